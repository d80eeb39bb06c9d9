"""Addresses of studies: participants' under `study/`, researchers' under `studies/`."""

from django.urls import path

from negotiation_site.studies import pages
from negotiation_site.studies.consumers import StudyConsumer

urlpatterns = [
    path("study/join/<slug:token>/", pages.join, name="study-join"),
    path("study/resume/<slug:token>/", pages.resume, name="study-resume"),
    path("study/<slug:public_id>/", pages.page, name="study-page"),
    path("study/<slug:public_id>/here/", pages.come_back, name="study-here"),
    path("study/<slug:public_id>/consent/", pages.consent, name="study-consent"),
    path("study/<slug:public_id>/instructions/", pages.instructions, name="study-instructions"),
    path("study/<slug:public_id>/quiz/", pages.quiz, name="study-quiz"),
    path("study/<slug:public_id>/go-on/", pages.go_on, name="study-go-on"),
    path("study/<slug:public_id>/leave-waiting/", pages.leave_waiting, name="study-leave-waiting"),
    path("study/<slug:public_id>/survey/", pages.survey, name="study-survey"),
    path("study/<slug:public_id>/beat/", pages.beat, name="study-beat"),
    path("study/<slug:public_id>/leave/", pages.leave, name="study-leave"),
    path("study/<slug:public_id>/leave/notice/", pages.put_away, name="study-notice"),
    path("study/<slug:public_id>/room/view.json", pages.room_view, name="study-room-view"),
    path("study/<slug:public_id>/room/act/", pages.room_act, name="study-room-act"),
    path("study/<slug:public_id>/room/result/", pages.room_result, name="study-room-result"),
]
websocket_urlpatterns = [path("ws/study/<slug:public_id>/", StudyConsumer.as_asgi())]
