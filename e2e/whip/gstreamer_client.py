"""Publishes by WHIP or watches by WHEP with GStreamer's webrtcbin: gstreamer_client.py publish|b-frames|sprop|watch <url> <token>.

`sprop` leaves the parameter sets out of the stream, so that only the offer has them.
`b-frames` publishes main profile with B-frames as constrained baseline, as OBS does when it is set so.
Prints `answered`; a viewer prints `frame <Unix ms> <red> <green> <blue>` for each picture. Ends with its standard input.
"""

import sys
import threading
import time
import urllib.request

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstWebRTC", "1.0")
gi.require_version("GstSdp", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

ENCODER = """
 x264enc tune=zerolatency speed-preset=ultrafast key-int-max=50 bitrate=500 ! video/x-h264,profile=constrained-baseline !
 rtph264pay config-interval=-1 aggregate-mode=zero-latency !
"""
B_FRAMES = """
 x264enc speed-preset=ultrafast bframes=2 b-adapt=false rc-lookahead=0 key-int-max=50 ! video/x-h264,profile=main !
 rtph264pay config-interval=-1 ! capssetter caps=application/x-rtp,profile-level-id=(string)42e01f !
"""
SPROP = """
 x264enc tune=zerolatency speed-preset=ultrafast key-int-max=50 bitrate=500 !
 video/x-h264,profile=constrained-baseline,stream-format=avc ! appsink name=encoded sync=false emit-signals=true
 appsrc name=stripped format=time is-live=true ! rtph264pay config-interval=0 aggregate-mode=zero-latency !
"""
PUBLISHED = """
webrtcbin name=peer bundle-policy=max-bundle
videotestsrc is-live=true pattern=solid-color foreground-color=0xff1e1ec8 ! video/x-raw,width=320,height=240,framerate=25/1 !
 %s
 application/x-rtp,media=video,encoding-name=H264,payload=96 ! peer.
audiotestsrc is-live=true freq=440 ! audioconvert ! audioresample ! opusenc ! rtpopuspay !
 application/x-rtp,media=audio,encoding-name=OPUS,payload=97 ! peer.
"""
CAPS = {
    "video": "application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000",
    "audio": "application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000",
}
SHOWN = """
rtpvp8depay ! vp8dec ! videoconvert ! videoscale ! video/x-raw,format=RGB,width=16,height=16 !
 appsink name=out sync=false emit-signals=true
"""


def post(url, token, body):
    headers = {"authorization": f"Bearer {token}", "content-type": "application/sdp"}
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)) as response:
        return response.headers["location"], response.read().decode()


def delete(url, token):
    urllib.request.urlopen(urllib.request.Request(url, headers={"authorization": f"Bearer {token}"}, method="DELETE"))


def show(sink):
    buffer = sink.emit("pull-sample").get_buffer()
    red, green, blue = buffer.extract_dup(3 * (16 * 4 + 4), 3)
    print("frame", int(time.time() * 1000), red, green, blue, flush=True)
    return Gst.FlowReturn.OK


def strip(sink, source):
    """Moves a picture of length-prefixed NAL units on, without its parameter sets."""
    sample = sink.emit("pull-sample")
    buffer = sample.get_buffer()
    data, kept, at = buffer.extract_dup(0, buffer.get_size()), b"", 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if data[at + 4] & 31 not in (7, 8):
            kept += data[at:end]
        at = end
    moved = Gst.Buffer.new_wrapped(kept)
    # x264enc begins at 1,000 hours, so webrtcbin would hold the raw timestamps back for as long.
    moved.pts = sample.get_segment().to_running_time(Gst.Format.TIME, buffer.pts)
    if source.get_property("caps") is None:
        source.set_property("caps", sample.get_caps())
    return source.emit("push-buffer", moved)


def main(role, url, token):
    Gst.init(None)
    watched = "webrtcbin name=peer bundle-policy=max-bundle latency=50 fakesrc num-buffers=0 ! fakesink"
    encoder = {"b-frames": B_FRAMES, "sprop": SPROP}.get(role, ENCODER)
    pipeline = Gst.parse_launch(watched if role == "watch" else PUBLISHED % encoder)
    if role == "sprop":
        pipeline.get_by_name("encoded").connect("new-sample", strip, pipeline.get_by_name("stripped"))
    peer = pipeline.get_by_name("peer")
    # By default it leaves loopback out.
    ice = peer.get_property("ice-agent")
    ice.emit("add-local-ip-address", "127.0.0.1")
    session = []

    def offered(promise, *_):
        # The description belongs to the reply, which must outlive it.
        reply = promise.get_reply()
        offer = reply.get_value("offer")
        peer.emit("set-local-description", offer, None)
        location, text = post(url, token, offer.sdp.as_text())
        session.append(location)
        _, answer = GstSdp.SDPMessage.new_from_text(text)
        description = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, answer)
        peer.emit("set-remote-description", description, None)
        print("answered", flush=True)

    def added(_, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        video = pad.get_current_caps().get_structure(0).get_string("media") == "video"
        chain = Gst.parse_bin_from_description(SHOWN if video else "fakesink sync=false", True)
        if video:
            chain.get_by_name("out").connect("new-sample", show)
        pipeline.add(chain)
        chain.sync_state_with_parent()
        pad.link(chain.get_static_pad("sink"))

    if role != "watch":
        for transceiver in (peer.emit("get-transceiver", i) for i in range(2)):
            transceiver.set_property("direction", GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY)
    else:
        peer.connect("pad-added", added)
        for caps in CAPS.values():
            direction = GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY
            transceiver = peer.emit("add-transceiver", direction, Gst.Caps.from_string(caps))
            transceiver.set_property("do-nack", True)
    peer.connect("on-negotiation-needed", lambda _: peer.emit("create-offer", None, Gst.Promise.new_with_change_func(offered)))
    pipeline.set_state(Gst.State.PLAYING)
    loop = GLib.MainLoop()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.quit()), daemon=True).start()
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    for location in session:
        delete(url.split("/wh")[0] + location, token)


main(*sys.argv[1:4])
