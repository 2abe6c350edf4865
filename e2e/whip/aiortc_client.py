"""Publishes by WHIP or watches by WHEP with aiortc: python3 aiortc_client.py publish|watch <url> <token>.

Prints `answered`, then for a viewer `frame <width> <height>` for the first pictures. Ends with its standard input.
"""

import asyncio
import sys

import aiohttp
from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.contrib.media import MediaStreamError
from aiortc.mediastreams import AudioStreamTrack, VideoStreamTrack


async def show(track):
    try:
        while True:
            frame = await track.recv()
            if track.kind == "video":
                print("frame", frame.width, frame.height, flush=True)
    except MediaStreamError:
        pass


async def main(role, url, token):
    connection = RTCPeerConnection()
    if role == "publish":
        for track in (AudioStreamTrack(), VideoStreamTrack()):
            connection.addTransceiver(track, direction="sendonly")
    else:
        connection.on("track", lambda track: asyncio.ensure_future(show(track)))
        for kind in ("audio", "video"):
            connection.addTransceiver(kind, direction="recvonly")
    await connection.setLocalDescription(await connection.createOffer())
    headers = {"authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as http:
        body = connection.localDescription.sdp
        async with http.post(url, data=body, headers={**headers, "content-type": "application/sdp"}) as response:
            answer = await response.text()
            if response.status != 201:
                sys.exit(f"{response.status} {answer}")
            session = response.headers["location"]
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        print("answered", flush=True)
        await asyncio.get_event_loop().run_in_executor(None, sys.stdin.read)
        await connection.close()
        await http.delete(url.split("/wh")[0] + session, headers=headers)


asyncio.run(main(*sys.argv[1:4]))
