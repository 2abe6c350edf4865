import type { Page } from 'playwright-core';

/** Lets a page show video in these codecs only, such as `video/VP8`, like a browser that has no others. */
export function decodeOnly(page: Page, ...codecs: string[]): Promise<void> {
  return page.evaluate((names) => {
    const proto = RTCPeerConnection.prototype;
    const add = proto.addTransceiver;
    proto.addTransceiver = function addTransceiver(this: RTCPeerConnection, kind, init) {
      const transceiver = add.call(this, kind, init);
      const { codecs: all = [] } = RTCRtpReceiver.getCapabilities('video') ?? {};
      const known = all.filter(({ mimeType }) => names.includes(mimeType));
      if (kind === 'video' && init?.direction === 'recvonly') transceiver.setCodecPreferences(known);
      return transceiver;
    };
  }, codecs);
}
