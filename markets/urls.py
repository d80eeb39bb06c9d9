"""Addresses of the market and room pages, and of the room socket."""

from django.urls import path

from markets import account_pages, views
from markets.consumers import RoomConsumer

urlpatterns = [
    path("markets/", views.market_list, name="market-list"),
    path("lobby/", views.lobby, name="lobby"),
    path("history/", views.history, name="history"),
    path("account/", account_pages.account, name="account"),
    path("account/sign-up/", account_pages.sign_up, name="sign-up"),
    path("account/sign-in/", account_pages.SignIn.as_view(), name="sign-in"),
    path("account/sign-out/", account_pages.sign_out, name="sign-out"),
    path("account/games/", account_pages.games, name="account-games"),
    path("account/password/", account_pages.ChangePassword.as_view(), name="change-password"),
    path("account/delete/", account_pages.delete, name="delete-account"),
    path("rooms/<slug:public_id>/", views.room, name="room"),
    path("rooms/<slug:public_id>/view.json", views.room_view, name="room-view"),
    path("rooms/<slug:public_id>/act/", views.room_act, name="room-act"),
    path("rooms/<slug:public_id>/result/", views.room_result, name="room-result"),
    path("rooms/<slug:public_id>/cancel/", views.room_cancel, name="room-cancel"),
    path("rooms/<slug:public_id>/consent/", views.room_consent, name="room-consent"),
    path("rooms/<slug:public_id>/replay/", views.room_replay, name="room-replay"),
    path("rooms/<slug:public_id>/record.json", views.room_record, name="room-record"),
    path("rooms/<slug:public_id>/join/<slug:token>/", views.room_join, name="room-join"),
]
websocket_urlpatterns = [path("ws/rooms/<slug:public_id>/", RoomConsumer.as_asgi())]
