"""The calls of the published SDK (`pip install jellyfish-server-sdk`) that server.py uses, with the standard library."""
import json
from types import SimpleNamespace
from urllib.request import Request, urlopen


class RoomApi:
    """Manages rooms and peers. Raises urllib.error.HTTPError when the server refuses."""

    def __init__(self, server_address="localhost:5002", server_api_token="development", secure=False):
        self._url = f"{'https' if secure else 'http'}://{server_address}"
        self._headers = {"authorization": f"Bearer {server_api_token}", "content-type": "application/json"}

    def create_room(self, **options):
        data = self._call("POST", "/room", options)
        return data.service_address, data.room

    def get_room(self, room_id):
        return self._call("GET", f"/room/{room_id}")

    def add_peer(self, room_id, options=None):
        return self._call("POST", f"/room/{room_id}/peer", {"type": "webrtc", "options": options or {}})

    def delete_peer(self, room_id, peer_id):
        self._call("DELETE", f"/room/{room_id}/peer/{peer_id}")

    def _call(self, method, path, body=None):
        sent = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self._url + path, sent, self._headers, method=method), timeout=5) as answer:
            text = answer.read()
        return json.loads(text, object_hook=lambda found: SimpleNamespace(**found)).data if text else None
