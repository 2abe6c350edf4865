import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { startNode } from '../harness/bloom-node.js';
import { browserSuite } from '../harness/stage.js';
import { GuidePage } from '../whip/guide-page.js';
import type { WebhookEvent } from 'livekit-server-sdk';
import { livekitNode, Participant, serviceOf, webhookReceiver } from './participant.js';

const events: WebhookEvent[] = [];
let server: Server | undefined;

async function startReported() {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', async () => {
      events.push(await webhookReceiver.receive(body, request.headers.authorization));
      response.end();
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return startNode({ env: { ...livekitNode, JF_LIVEKIT_WEBHOOK_URLS: url } });
}

afterAll(() => void server?.close());

browserSuite("LiveKit's webhooks", { node: startReported }, (stage) => {
  test('tell the whole call of a livekit-client, and nothing of a resume', async () => {
    const to = { url: stage.node.url.replace('http', 'ws'), room: 'a room', identity: 'ann' };
    const ann = await Participant.join(await stage.page('livekit'), to);
    const index = await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await until(() => events.some(({ event }) => event === 'track_published'));
    await ann.page.evaluate(() => window.livekit.loseSocket());
    await ann.logged('reconnected');
    await ann.page.evaluate((at) => window.livekit.unpublish(at), index);
    await until(() => events.some(({ event }) => event === 'track_unpublished'));
    await ann.page.evaluate(() => window.livekit.disconnect());
    await until(() => events.some(({ event }) => event === 'participant_left'));

    expect(events.map(({ event }) => event)).toEqual([
      'room_started',
      'participant_joined',
      'track_published',
      'track_unpublished',
      'participant_left',
    ]);
    expect(events.map(({ room }) => room?.name)).toEqual(Array(5).fill('a room'));
    expect(events.slice(1).map(({ participant }) => participant?.identity)).toEqual(Array(4).fill('ann'));
  });

  test('tell of a publisher by WHIP as ingress, as RoomService does', async () => {
    const room = await stage.room();
    const { id, token } = await stage.api.addPeer(room);
    const encoder = await GuidePage.open(stage.browser);
    await encoder.publish('red', { url: `${stage.node.url}/whip`, token });
    const joined = (): WebhookEvent | undefined =>
      events.find(({ event, participant }) => event === 'participant_joined' && participant?.identity === id);
    await until(() => joined() !== undefined);
    const ingress = { identity: id, kind: 'INGRESS' };
    expect(joined()?.room?.name).toBe(room);
    expect(joined()?.participant?.toJson()).toMatchObject(ingress);
    expect((await serviceOf(stage.node.url).getParticipant(room, id)).toJson()).toMatchObject(ingress);
    await encoder.close();
  });
});
