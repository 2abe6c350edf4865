"""Serves a page, and a seat in one room to everybody who opens it: here a real backend would ask who it is."""
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from room_api import RoomApi  # or, unchanged: from jellyfish import PeerOptionsWebRTC, RoomApi

bloom = urlsplit(os.environ.get("BLOOM_URL", "http://127.0.0.1:5002"))
room_api = RoomApi(
    server_address=bloom.netloc,
    server_api_token=os.environ.get("BLOOM_TOKEN", "development"),
    secure=bloom.scheme == "https",
)
_address, room = room_api.create_room()

# npm may put the packages into the node_modules of a folder above.
CLIENT = "node_modules/@bloom/client/dist/index.js"
FILES = {
    "/": ("text/html", Path(__file__).with_name("index.html")),
    "/client.js": ("text/javascript", next(folder / CLIENT for folder in Path(__file__).resolve().parents if (folder / CLIENT).exists())),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path not in FILES:
            return self.send_error(404)
        kind, path = FILES[self.path]
        self.answer(kind, path.read_bytes())

    def do_POST(self):
        if self.path != "/seat":
            return self.send_error(404)
        peer = room_api.add_peer(room.id)
        self.answer("application/json", json.dumps({"token": peer.token, "url": bloom.netloc}).encode())

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", f"{kind}; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Handler)
print(f"Open http://127.0.0.1:{server.server_port}/ in two tabs", flush=True)
server.serve_forever()
