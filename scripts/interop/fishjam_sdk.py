"""Uses the Fishjam server SDK as a backend does. Arguments: address of the node, token of the API."""

import sys

from fishjam import FishjamClient, PeerOptions, RoomOptions
from fishjam.errors import HTTPError

client = FishjamClient.create_and_verify(fishjam_id=sys.argv[1], management_token=sys.argv[2])
room = client.create_room()
assert client.get_room(room.id).config.max_peers is None
with_codec = client.create_room(RoomOptions(max_peers=2, video_codec="vp8"))
assert with_codec.config.video_codec == "vp8", with_codec
peer, token = client.create_peer(room.id, PeerOptions(metadata={"name": "Ann"}))
assert token
assert [each.id for each in client.get_room(room.id).peers] == [peer.id]
assert {each.id for each in client.get_all_rooms()} == {room.id, with_codec.id}
client.delete_peer(room.id, peer.id)


def refused(call, sentence):
    try:
        call()
    except HTTPError as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(f"accepted instead of: {sentence}")


refused(lambda: client.create_room(RoomOptions(room_type="livestream")), "supports only roomType")
refused(lambda: client.create_peer(room.id, PeerOptions(subscribe_mode="manual")), "supports only subscribeMode")
assert len(client.get_all_rooms()) == 2
for each in (room, with_codec):
    client.delete_room(each.id)
assert client.get_all_rooms() == []
