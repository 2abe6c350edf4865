"""Two people with LiveKit's Python SDK in a room of Bloom, and its server SDK. Usage: URL KEY SECRET."""

import asyncio
import math
import os
import sys
from array import array

from livekit import api, rtc

URL, KEY, SECRET = sys.argv[1:4]
HZ, RATE, SIZE = 440, 48_000, (320, 240)
# Of a picture in RGBA: red.
COLOUR = bytes([220, 30, 30, 255])
WITHIN_S = 30


def token(room: str, identity: str) -> str:
    grants = api.VideoGrants(room_join=True, room=room)
    return api.AccessToken(KEY, SECRET).with_identity(identity).with_name(identity).with_grants(grants).to_jwt()


async def join(room: str, identity: str, single: bool) -> rtc.Room:
    joined = rtc.Room()
    options = rtc.RoomOptions(single_peer_connection=single)
    await joined.connect(URL.replace("http", "ws"), token(room, identity), options)
    return joined


async def send_tone(source: rtc.AudioSource) -> None:
    at = 0
    while True:
        samples = array("h", (int(8_000 * math.sin(2 * math.pi * HZ * (at + i) / RATE)) for i in range(RATE // 100)))
        at += RATE // 100
        await source.capture_frame(rtc.AudioFrame(samples.tobytes(), RATE, 1, RATE // 100))


async def send_picture(source: rtc.VideoSource) -> None:
    width, height = SIZE
    frame = rtc.VideoFrame(width, height, rtc.VideoBufferType.RGBA, COLOUR * (width * height))
    while True:
        source.capture_frame(frame)
        await asyncio.sleep(1 / 15)


async def hears(track: rtc.Track) -> float:
    """Returns the pitch, in Hz, from the zero crossings of a second of sound that is not silent."""
    crossings, samples, last = 0, 0, 0
    async for event in rtc.AudioStream(track, sample_rate=RATE, num_channels=1):
        for value in event.frame.data:
            if samples == 0 and abs(value) < 1_000:
                continue
            crossings += last < 0 <= value
            samples, last = samples + 1, value
        if samples >= RATE:
            return crossings * RATE / samples
    raise AssertionError("the sound has ended")


async def sees(track: rtc.Track) -> tuple[int, int, int]:
    """Returns the colour in the middle of the tenth picture."""
    count = 0
    async for event in rtc.VideoStream(track, format=rtc.VideoBufferType.RGBA):
        count += 1
        frame = event.frame
        if count == 10:
            at = (frame.height // 2 * frame.width + frame.width // 2) * 4
            return tuple(frame.data[at : at + 3])
    raise AssertionError("the picture has ended")


async def call(room: str, single: bool) -> None:
    ann = await join(room, "ann", single)
    tracks: dict[int, asyncio.Future] = {kind: asyncio.get_running_loop().create_future() for kind in (1, 2)}
    data: asyncio.Queue = asyncio.Queue()
    bob = rtc.Room()
    bob.on("track_subscribed", lambda track, *_: tracks[track.kind].set_result(track))
    bob.on("data_received", lambda packet: data.put_nowait((bytes(packet.data), packet.topic, packet.participant.identity)))
    await bob.connect(
        URL.replace("http", "ws"), token(room, "bob"), rtc.RoomOptions(single_peer_connection=single)
    )

    tone, picture = rtc.AudioSource(RATE, 1), rtc.VideoSource(*SIZE)
    microphone = rtc.LocalAudioTrack.create_audio_track("mic", tone)
    camera = rtc.LocalVideoTrack.create_video_track("cam", picture)
    sending = [asyncio.create_task(send_tone(tone)), asyncio.create_task(send_picture(picture))]
    publish = ann.local_participant.publish_track
    await publish(microphone, rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE))
    await publish(camera, rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_CAMERA, simulcast=True))

    hz = await hears(await tracks[rtc.TrackKind.KIND_AUDIO])
    assert abs(hz - HZ) < 20, f"heard {hz} Hz"
    red, green, blue = await sees(await tracks[rtc.TrackKind.KIND_VIDEO])
    assert red > 150 and green < 90 and blue < 90, f"saw {red}, {green}, {blue}"

    await ann.local_participant.publish_data(b"hello", reliable=True, topic="t")
    assert await data.get() == (b"hello", "t", "ann")
    ann.local_participant.register_rpc_method("greet", greet)
    answer = await bob.local_participant.perform_rpc(destination_identity="ann", method="greet", payload="hi")
    assert answer == "hi, bob", answer

    service = api.LiveKitAPI(URL, KEY, SECRET)
    people = await service.room.list_participants(api.ListParticipantsRequest(room=room))
    assert sorted(each.identity for each in people.participants) == ["ann", "bob"], people
    await service.room.delete_room(api.DeleteRoomRequest(room=room))
    await service.aclose()
    for task in sending:
        task.cancel()
    await asyncio.gather(ann.disconnect(), bob.disconnect())


async def greet(data: rtc.RpcInvocationData) -> str:
    return f"{data.payload}, {data.caller_identity}"


async def main() -> None:
    for single in (True, False):
        await asyncio.wait_for(call(f"python-{single}", single), WITHIN_S)
        print("passed", "one connection" if single else "two connections", flush=True)


asyncio.run(main())
# The core's threads may still call into an interpreter that is shutting down, which aborts the process.
sys.stdout.flush()
os._exit(0)
