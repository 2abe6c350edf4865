// A node that is paused for longer than its time limits, like one whose virtual machine is moved. Its clients keep
// sending, so none of them may be lost.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createCertificate } from '@bloom/webrtc';
import { TestClient } from '@bloom/webrtc/testing';
import type WebSocket from 'ws';
import { Api } from '../harness/api.js';
import { apiToken, type BloomNode, startNode } from '../harness/bloom-node.js';
import { describeWith } from '../harness/needs.js';
import { subscribe } from '../hostile/harness/backend.js';
import { newCredentials, ssrcOf, writeOffer } from '../hostile/harness/offer.js';
import { Sender } from '../hostile/harness/sender.js';

/** Longer than the time limits of ICE (30 s) and websockets (60 s). */
const PAUSE_MS = 70_000;
const SETTLE_MS = 5_000;

describeWith(['nightly'], 'a pause of a node', () => {
  let node: BloomNode;
  let backend: WebSocket;

  beforeAll(async () => {
    node = await startNode();
    backend = await subscribe(node.url, apiToken);
  }, 60_000);
  afterAll(async () => {
    backend?.terminate();
    await node?.stop();
  });

  test('keeps a WHIP client that keeps sending and a backend connected', async () => {
    const api = new Api(node.url);
    await api.request('POST', '/room', { roomId: 'one' });
    const { body } = await api.request('POST', '/room/one/peer', { type: 'webrtc' });
    const certificate = await createCertificate();
    const { ufrag, pwd } = newCredentials();
    const offer = writeOffer([{ kind: 'video', direction: 'sendonly' }], {
      ufrag,
      pwd,
      fingerprint: certificate.fingerprint.value,
    });
    const answer = await fetch(`${node.url}/whip`, {
      method: 'POST',
      headers: { authorization: `Bearer ${body.data.token}`, 'content-type': 'application/sdp' },
      body: offer,
    });
    const sdp = await answer.text();
    const value = (name: string): string => new RegExp(`^a=${name}:(.*?)\\r?$`, 'm').exec(sdp)?.[1] ?? '';
    const [address = '', port = ''] = value('candidate').split(' ').slice(4);
    const ice = { localUfrag: value('ice-ufrag'), localPwd: value('ice-pwd'), remoteUfrag: ufrag, remotePwd: pwd };
    const wire = await TestClient.open({ address, port: Number(port) }, certificate);
    await wire.check(ice);
    await wire.handshake();
    const sender = new Sender(wire, ssrcOf(0));
    const sending = setInterval(() => sender.send(), 20);
    const checking = setInterval(() => void wire.check(ice).catch(() => undefined), 2_000);
    const peer = async () => (await api.request('GET', '/room/one')).body.data.peers[0];
    try {
      await delay(1_000);
      process.kill(node.pid, 'SIGSTOP');
      await delay(PAUSE_MS);
      process.kill(node.pid, 'SIGCONT');
      await delay(SETTLE_MS);
      expect(await peer()).toMatchObject({ status: 'connected', tracks: [{ type: 'video' }] });
      expect(backend.readyState).toBe(backend.OPEN);
      expect(node.log()).not.toMatch(/transport_silent|\[error\]/);
    } finally {
      clearInterval(sending);
      clearInterval(checking);
    }
  }, 120_000);
});
