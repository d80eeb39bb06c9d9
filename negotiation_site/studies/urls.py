"""Addresses of studies: participants' under `study/`, researchers' under `studies/`."""

from django.urls import path

from negotiation_site.studies import bonus_pages, building, dataset_pages, monitor_pages, pages, plans
from negotiation_site.studies.consumers import StudyConsumer

urlpatterns = [
    path("study/join/<slug:token>/", pages.join, name="study-join"),
    path("study/resume/<slug:token>/", pages.resume, name="study-resume"),
    path("study/plan/<slug:sha256>/", plans.plan, name="study-plan"),
    path("study/plan/<slug:sha256>/plan.json", plans.plan_json, name="study-plan-json"),
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
    path("studies/", building.study_list, name="studies"),
    path("studies/new/", building.new, name="study-new"),
    path("studies/<slug:slug>/", building.study, name="study"),
    path("studies/<slug:slug>/change/", building.change, name="study-change"),
    path("studies/<slug:slug>/copy/", building.copy, name="study-copy"),
    path("studies/<slug:slug>/status/", building.set_status, name="study-status"),
    path("studies/<slug:slug>/links/", building.make_links, name="study-links"),
    path("studies/<slug:slug>/links.csv", building.links_csv, name="study-links-csv"),
    path("studies/<slug:slug>/links/<int:number>/close/", building.close_link, name="study-link-close"),
    path("studies/<slug:slug>/versions/<int:number>/register/", building.register, name="study-register"),
    path("studies/<slug:slug>/expected/", building.expected, name="study-expected"),
    path("studies/<slug:slug>/preview/", building.preview, name="study-preview"),
    path("studies/<slug:slug>/monitor/", monitor_pages.page, name="study-monitor"),
    path("studies/<slug:slug>/monitor/live/", monitor_pages.live, name="study-monitor-live"),
    path("studies/<slug:slug>/monitor/say/", monitor_pages.say, name="study-monitor-say"),
    path("studies/<slug:slug>/monitor/status/", monitor_pages.set_status, name="study-monitor-status"),
    path("studies/<slug:slug>/people/<slug:public_id>/", monitor_pages.person, name="study-monitor-person"),
    path("studies/<slug:slug>/people/<slug:public_id>/act/", monitor_pages.act, name="study-monitor-act"),
    path("studies/<slug:slug>/data.zip", dataset_pages.download, name="study-data"),
    path("studies/<slug:slug>/bonus/", bonus_pages.page, name="study-bonus"),
    path("studies/<slug:slug>/bonus/settle/", bonus_pages.settle, name="study-bonus-settle"),
    path("studies/<slug:slug>/bonus/bonus.csv", bonus_pages.full, name="study-bonus-csv"),
    path("studies/<slug:slug>/bonus/bulk.csv", bonus_pages.bulk, name="study-bonus-bulk"),
]
websocket_urlpatterns = [path("ws/study/<slug:public_id>/", StudyConsumer.as_asgi())]
