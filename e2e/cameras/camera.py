"""An IP camera: gst-rtsp-server with a stream for each mount.

Arguments: port, JSON {mount: pipeline}, and a user with a password if it demands a login. The
mount "/udp" refuses RTP over TCP. It prints "ready". Each line on stdin,
"element property value", sets a property in its running streams and is answered by the Unix time in ms.
"""

import json
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

Gst.init(None)
port, mounts, *login = sys.argv[1:]
server = GstRtspServer.RTSPServer(service=port, address="127.0.0.1")
running = []

if login:
    user, password = login
    token = GstRtspServer.RTSPToken()
    token.set_string(GstRtspServer.RTSP_TOKEN_MEDIA_FACTORY_ROLE, "viewer")
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    auth.add_digest(user, password, token)
    server.set_auth(auth)

for mount, pipeline in json.loads(mounts).items():
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(pipeline)
    if mount == "/udp":
        factory.set_protocols(GstRtsp.RTSPLowerTrans.UDP)
    factory.connect("media-configure", lambda _, media: running.append(media.get_element()))
    if login:
        permissions = GstRtspServer.RTSPPermissions()
        for permission in ("media.factory.access", "media.factory.construct"):
            permissions.add_permission_for_role("viewer", permission, True)
        factory.set_permissions(permissions)
    server.get_mount_points().add_factory(mount, factory)


def change(element, name, value):
    for stream in running:
        found = stream.get_by_name(element)
        if found is not None:
            Gst.util_set_object_arg(found, name, value)
    print(int(time.time() * 1000), flush=True)
    return False


def obey():
    for line in sys.stdin:
        GLib.idle_add(change, *line.split())


server.attach(None)
threading.Thread(target=obey, daemon=True).start()
print("ready", flush=True)
GLib.MainLoop().run()
