import { expect, test } from '@jest/globals';
import { browserSuite, type Stage } from '../harness/stage.js';
import { livekitNode, Participant, serviceOf, tokenFor } from './participant.js';

let rooms = 0;

interface Call {
  readonly room: string;
  readonly url: string;
  readonly ann: Participant;
  readonly bob: Participant;
}

async function call(stage: Stage): Promise<Call> {
  rooms += 1;
  const [room, url] = [`media-${rooms}`, stage.node.url.replace('http', 'ws')];
  const ann = await Participant.join(await stage.page('livekit'), { url, room, identity: 'ann' });
  const bob = await Participant.join(await stage.page('livekit'), { url, room, identity: 'bob' });

  return { room, url, ann, bob };
}

/** Returns the peer of an identity as REST shows it. */
async function peerOf(stage: Stage, room: string, identity: string) {
  const { peers } = await stage.api.room(room);

  return peers.find(
    ({ metadata }: { metadata: { server: { identity: string } } }) => metadata.server.identity === identity,
  );
}

browserSuite('livekit-client with Bloom', { node: { env: livekitNode } }, (stage) => {
  test('receives the layer of a simulcast camera that it wants', async () => {
    const { ann, bob } = await call(stage);
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red', width: 960, height: 540 }));
    const [camera] = await bob.sees((tracks) => tracks.some(({ width }) => width === 960));
    expect(camera).toMatchObject({ simulcast: true, source: 'camera' });
    for (const [quality, width] of [
      [0, 320],
      [1, 640],
      [2, 960],
    ] as const) {
      await bob.page.evaluate((wanted) => window.livekit.setQuality('ann', wanted), quality);
      await bob.sees((tracks) => tracks.some((track) => track.width === width));
    }
  });

  test('mutes, unmutes, unpublishes and publishes again', async () => {
    const { room, ann, bob } = await call(stage);
    const index = await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await bob.plays('red');

    await ann.page.evaluate((at) => window.livekit.published(at).mute(), index);
    await bob.sees((tracks) => tracks.some(({ muted }) => muted));
    expect((await peerOf(stage, room, 'ann')).tracks).toMatchObject([{ metadata: { source: 'camera', muted: true } }]);
    await ann.page.evaluate((at) => window.livekit.published(at).unmute(), index);
    await bob.sees((tracks) => tracks.every(({ muted }) => !muted));

    for (const colour of ['green', 'blue', 'red', 'yellow'] as const) {
      const last = await ann.page.evaluate(() => window.livekit.count() - 1);
      await ann.page.evaluate((at) => window.livekit.unpublish(at), last);
      await bob.sees((tracks) => tracks.length === 0);
      await ann.page.evaluate((next) => window.livekit.publish({ colour: next }), colour);
      await bob.plays(colour);
    }
  });

  test('shows eight pictures at once, more than it has sections for at first', async () => {
    const { ann, bob } = await call(stage);
    for (const colour of ['red', 'green', 'blue', 'yellow', 'magenta', 'cyan', 'grey', 'red'] as const) {
      await ann.page.evaluate((each) => window.livekit.publish({ colour: each }, { simulcast: false }), colour);
    }
    const seen = await bob.sees((tracks) => tracks.length === 8 && tracks.every(({ frames }) => frames > 3));
    expect(new Set(seen.map(({ colour }) => colour))).toEqual(
      new Set(['red', 'green', 'blue', 'yellow', 'magenta', 'cyan', 'grey']),
    );
  });

  test('learns of a mute and of lost permissions from the backend', async () => {
    const { room, ann, bob } = await call(stage);
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await bob.plays('red');
    const peer = await peerOf(stage, room, 'ann');
    await stage.api.request('PATCH', `/room/${room}/peer/${peer.id}`, { permissions: { publish: false } });
    await bob.sees((tracks) => tracks.length === 0);
    await ann.logged('participantPermissionsChanged');
    await ann.until(
      () => ann.page.evaluate(() => window.livekit.mayPublish()),
      (may) => !may,
    );
  });

  test('is muted by the server, and may unmute itself', async () => {
    const { room, ann, bob } = await call(stage);
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    const { sid } = await bob.plays('red');
    await serviceOf(stage.node.url).mutePublishedTrack(room, 'ann', sid, true);
    await bob.sees((tracks) => tracks.some(({ muted }) => muted));
    await ann.logged('trackMuted');
    await ann.page.evaluate(() => window.livekit.published(window.livekit.count() - 1).unmute());
    const [{ frames } = { frames: 0 }] = await bob.sees((tracks) => tracks.some(({ muted }) => !muted));
    await bob.sees((tracks) => tracks.some((track) => track.frames > frames + 5));
    const { tracks } = await peerOf(stage, room, 'ann');
    expect(tracks).toMatchObject([{ muted: false }]);
  });

  test('changes its name, metadata and attributes for everybody', async () => {
    const { room, url, bob } = await call(stage);
    const grant = { canUpdateOwnMetadata: true };
    const eve = await Participant.join(await stage.page('livekit'), { url, room, identity: 'eve', grant });
    await eve.page.evaluate(() => window.livekit.rename('Eva', 'hello', { hand: 'up' }));
    const eva = { name: 'Eva', metadata: 'hello', attributes: { hand: 'up' } };
    const seen = await bob.until(
      () => bob.page.evaluate(() => window.livekit.participants()),
      (all) => all.some(({ metadata, attributes }) => metadata === 'hello' && attributes['hand'] === 'up'),
    );
    expect(seen).toContainEqual(expect.objectContaining({ identity: 'eve', ...eva }));
    expect((await peerOf(stage, room, 'eve')).metadata).toMatchObject({ peer: null, server: eva });
  });

  test('shares its tracks with those it names only, and then with all again', async () => {
    const { room, url, ann, bob } = await call(stage);
    const eve = await Participant.join(await stage.page('livekit'), { url, room, identity: 'eve' });
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await Promise.all([bob, eve].map((each) => each.plays('red')));
    await ann.page.evaluate(() => {
      const eveOnly = [{ participantIdentity: 'eve', allowAll: true }];
      window.livekit.room().localParticipant.setTrackSubscriptionPermissions(false, eveOnly);
    });
    const [denied] = await bob.sees(([track]) => track?.subscribed === false);
    const { frames } = await eve.plays('red');
    await eve.sees((tracks) => tracks.some((track) => track.frames > frames + 30));
    const [still] = await bob.page.evaluate(() => window.livekit.tracks());
    expect(still?.subscribed).toBe(false);
    // Pictures on their way when it was denied.
    expect((still?.frames ?? 0) - (denied?.frames ?? 0)).toBeLessThan(10);
    await ann.page.evaluate(() => window.livekit.room().localParticipant.setTrackSubscriptionPermissions(true));
    const shared = await bob.plays('red');
    await bob.sees((tracks) => tracks.some((track) => track.subscribed && track.frames > shared.frames + 5));
  });

  test('resumes when its websocket is lost, and everybody keeps seeing it', async () => {
    const { room, ann, bob } = await call(stage);
    await ann.page.evaluate(() => window.livekit.publish({ colour: 'red' }));
    await bob.plays('red');
    const before = await peerOf(stage, room, 'ann');
    await ann.page.evaluate(() => window.livekit.loseSocket());
    await ann.logged('reconnected');
    const { frames } = await bob.plays('red');
    await bob.sees((tracks) => tracks.some((track) => track.frames > frames + 5));
    expect((await peerOf(stage, room, 'ann')).id).toBe(before.id);
    await bob.page.evaluate(() => window.livekit.publish({ colour: 'blue' }));
    await ann.plays('blue');
  });

  test('is replaced by a later join of its identity', async () => {
    const { room, url, ann, bob } = await call(stage);
    const later = await Participant.join(await stage.page('livekit'), { url, room, identity: 'ann' });
    await ann.logged('disconnected 2');
    await later.page.evaluate(() => window.livekit.publish({ colour: 'green' }));
    await bob.plays('green', 'ann');
    expect((await stage.api.room(room)).peers).toHaveLength(2);
  });

  test('shows why it was refused', async () => {
    const page = await stage.page('livekit');
    const url = stage.node.url.replace('http', 'ws');
    const room = await stage.room({ maxPeers: 0 });
    const token = await tokenFor(room, 'ann');
    const attempt = (with_: string) =>
      page.evaluate(([to, proof]) => window.livekit.connect(to, proof), [url, with_] as const);
    expect(await attempt(token)).toBe('NotAllowed 403 could not establish signal connection: room is full');
    expect(await attempt(`${token}x`)).toBe(
      'NotAllowed 401 could not establish signal connection: invalid token: the signature does not match',
    );
    expect(await attempt(await tokenFor(room, 'ann', { roomJoin: false }))).toBe(
      'NotAllowed 401 could not establish signal connection: permissions denied',
    );
  });

  test('leaves, and its peer is gone', async () => {
    const { room, ann, bob } = await call(stage);
    await ann.page.evaluate(() => window.livekit.disconnect());
    await bob.until(
      () => bob.page.evaluate(() => window.livekit.participants().length),
      (count) => count === 0,
    );
    expect((await stage.api.room(room)).peers).toHaveLength(1);
  });
});
