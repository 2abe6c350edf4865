"""Uses the Jellyfish server SDK as a backend does. Arguments: address of the node, token of the API."""

import asyncio
import sys
from urllib.parse import urlsplit

from jellyfish import (
    ComponentOptionsFile,
    Notifier,
    PeerOptionsWebRTC,
    RecordingApi,
    RoomApi,
)
from jellyfish.errors import BadRequestError, NotFoundError, ServiceUnavailableError, UnauthorizedError
from jellyfish.events import ServerMessagePeerAdded, ServerMessageRoomCreated, ServerMessageRoomDeleted

SILENCE_S = 10
address, token = urlsplit(sys.argv[1]).netloc, sys.argv[2]
rooms = RoomApi(server_address=address, server_api_token=token)


def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


async def use_rooms():
    notifier = Notifier(server_address=address, server_api_token=token)
    seen = asyncio.Queue()
    notifier.on_server_notification(seen.put_nowait)
    listening = asyncio.create_task(notifier.connect())
    await asyncio.wait_for(notifier.wait_ready(), SILENCE_S)

    place, room = rooms.create_room(room_id="interop", max_peers=1, video_codec="vp8")
    assert place == address, place
    added = rooms.add_peer(room.id, options=PeerOptionsWebRTC(enable_simulcast=False))
    assert added.token and added.peer_websocket_url.startswith(address), added
    shown = rooms.get_room(room.id)
    assert [peer.id for peer in shown.peers] == [added.peer.id]
    assert shown.config.max_peers == 1
    assert room.id in {each.id for each in rooms.get_all_rooms()}
    raises(ServiceUnavailableError, lambda: rooms.add_peer(room.id, options=PeerOptionsWebRTC()))
    raises(BadRequestError, lambda: rooms.create_room(room_id="interop"))
    raises(NotFoundError, lambda: rooms.add_component(room.id, ComponentOptionsFile(file_path="absent.h264")))
    rooms.delete_peer(room.id, added.peer.id)
    rooms.delete_room(room.id)
    raises(NotFoundError, lambda: rooms.get_room(room.id))

    kinds = []
    while ServerMessageRoomDeleted not in kinds:
        kinds.append(type(await asyncio.wait_for(seen.get(), SILENCE_S)))
    assert kinds[:2] == [ServerMessageRoomCreated, ServerMessagePeerAdded], kinds
    listening.cancel()


asyncio.run(use_rooms())
raises(UnauthorizedError, RoomApi(server_address=address, server_api_token="wrong").get_all_rooms)
recordings = RecordingApi(server_address=address, server_api_token=token)
assert recordings.get_list() == []
raises(NotFoundError, lambda: recordings.delete("absent"))
