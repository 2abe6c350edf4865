// Streams of encoders that browsers never send: without SSRC or mid, and with rids of any name.
import { expect, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { GuidePage } from './guide-page.js';

/** Runs in the page, which then sends the offer as edited here; what it publishes stays the same. */
const sending = (edit: string): string => `
  const { fetch } = window;
  const edit = (sdp) => ${edit};
  window.fetch = (url, init) => fetch(url, init.body ? { ...init, body: edit(init.body) } : init);
`;
const NAMELESS = String.raw`sdp.replace(/^a=(ssrc|ssrc-group|extmap:\d+ urn:ietf:params:rtp-hdrext:sdes):.*\r\n/gm, '')`;
/** The payload type of the video belongs to both m-lines. */
const AMBIGUOUS = String.raw`${NAMELESS}.replace(/^(m=audio .*)\r\n/m, '$1 96\r\na=rtpmap:96 telephone-event/8000\r\n')`;

/** Runs in the page. Maps each rid to the divisor of its size. */
const simulcast = (layers: Readonly<Record<string, number>>): string => `
  const { addTransceiver } = RTCPeerConnection.prototype;
  const sendEncodings = ${JSON.stringify(Object.entries(layers).map(([rid, scaleResolutionDownBy]) => ({ rid, scaleResolutionDownBy })))};
  RTCPeerConnection.prototype.addTransceiver = function (track, init) {
    return addTransceiver.call(this, track, track.kind === 'video' ? { ...init, sendEncodings } : init);
  };
`;

/** Creates a room with two peers that have not connected. */
async function pair(stage: Stage) {
  const room = await stage.room();

  return [await stage.api.addPeer(room), await stage.api.addPeer(room)] as const;
}

/** Publishes a picture from a page prepared by the script, and opens one that watches it. */
async function played(stage: Stage, colour: string, script: string) {
  const [ann, eve] = await pair(stage);
  const publisher = await GuidePage.open(stage.browser);
  await publisher.page.evaluate(script);
  await publisher.publish(colour, { url: `${stage.node.url}/whip`, token: ann.token });
  const viewer = await GuidePage.open(stage.browser);
  await viewer.watch(`${stage.node.url}/whep?peer=${ann.id}`, eve.token);

  return { ann, publisher: publisher.page, viewer, close: () => Promise.all([publisher.close(), viewer.close()]) };
}

browserSuite('Encoders by WHIP', {}, (stage) => {
  test('shows a stream without SSRC and mid', async () => {
    const { viewer, close } = await played(stage, 'red', sending(NAMELESS));
    await viewer.sees('red');
    await close();
  });

  test('logs a stream that nothing identifies, with the remedy', async () => {
    const { ann, close } = await played(stage, 'red', sending(AMBIGUOUS));
    await until('the warning', () => stage.node.log().includes(`peer_id=${ann.id} [warning] room.media_dropped`));
    expect(stage.node.log()).toMatch(/room\.media_dropped .*cause=unknown_ssrc .*fix=".*a=ssrc/);
    await close();
  });

  test.each([
    // As OBS offers them, and as LiveKit does.
    ['a;b', { a: 1, b: 2 }],
    ['q;f', { q: 2, f: 1 }],
  ])('shows the best of the rids %s', async (rids, layers) => {
    const { publisher, viewer, close } = await played(stage, 'green', simulcast(layers));
    await viewer.sees('green');
    const answer: string = await publisher.evaluate('window.whip.connection.currentRemoteDescription.sdp');
    expect(answer).toContain(`a=simulcast:recv ${rids}\r\n`);
    await viewer.page.waitForFunction(`document.querySelector('video').videoWidth === 640`);
    await close();
  });
});
