import { expect, test } from '@jest/globals';
import { addStream, choose, fetchFile, fetchRecording, hlsSuite, playable } from './support.js';

hlsSuite('Files of a stream', {}, (stage) => {
  test('files are served while the room exists: master, playlist, header, segments, parts, waiting requests', async () => {
    const { ann, room } = await stage.call(['ann'], { videoCodec: 'h264' });
    const file = (name: string) => fetchFile(stage, room, name);
    expect((await file('index.m3u8')).status).toBe(404);

    const component = await addStream(stage, room, { lowLatency: true, targetWindowDuration: 20 });
    const created = (await stage.api.room(room)).components[0];
    expect(created.properties).toEqual({
      playable: false,
      lowLatency: true,
      persistent: false,
      targetWindowDuration: 20,
      subscribeMode: 'auto',
      s3: null,
    });
    // Nothing has been published, so there is nothing to play yet.
    expect((await file('index.m3u8')).status).toBe(404);
    await ann.addVideo({ colour: 'red', width: 320, height: 180, fps: 15 });
    await playable(stage, room);

    const master = await file('index.m3u8');
    expect({ ...master, text: '', tookMs: 0 }).toEqual({
      status: 200,
      type: 'application/vnd.apple.mpegurl',
      text: '',
      tookMs: 0,
    });
    const media = master.text.trim().split('\n').at(-1)!;
    const playlist = (await file(media)).text;
    const header = /#EXT-X-MAP:URI="([^"]+)"/.exec(playlist)![1]!;
    const segment = /^muxed_segment_\d+_\S+\.m4s$/m.exec(playlist)![0];
    expect(await file(header)).toMatchObject({ status: 200, type: 'video/mp4' });
    expect(await file(segment)).toMatchObject({ status: 200, type: 'video/mp4' });

    // A request for an announced part waits instead of being refused.
    const hinted = /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="([^"]+)"/.exec(playlist)![1]!;
    expect(await file(hinted)).toMatchObject({ status: 200, type: 'video/mp4' });
    const [, number] = /#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(playlist)!;
    const next = Number(number) + playlist.split('#EXTINF').length;
    const waited = await file(`${media}?_HLS_msn=${next}&_HLS_part=1`);
    expect(waited.text).toContain(`_${next}_main_1_part.m4s"`);
    const whole = await file(`${media}?_HLS_msn=${next + 1}`);
    expect(whole.text).toMatch(new RegExp(`^muxed_segment_${next + 1}_main\\.m4s$`, 'm'));

    expect((await file(`${media}?_HLS_msn=${next + 40}&_HLS_part=0`)).status).toBe(400);
    expect((await file(`${media}?_HLS_msn=x&_HLS_part=0`)).status).toBe(400);
    expect((await file(`muxed_segment_${next + 40}_main_0_part.m4s`)).status).toBe(404);
    expect((await file('..%2Findex.m3u8')).status).toBe(400);
    expect((await file('nothing.m4s')).status).toBe(404);

    const subscribed = await stage.api.request('POST', `/room/${room}/component/${component}/subscribe`, {
      origins: [],
    });
    expect(subscribed.status).toBe(400);
    expect((await stage.api.request('DELETE', `/room/${room}/component/${component}`)).status).toBe(204);
    expect((await file('index.m3u8')).status).toBe(404);
    await addStream(stage, room);
  }, 60_000);

  test('become a recording when the room of a persistent stream ends, and not before', async () => {
    const { ann, room } = await stage.call(['ann'], { videoCodec: 'h264' });
    await addStream(stage, room, { persistent: true });
    await ann.addVideo({ colour: 'red', width: 320, height: 180, fps: 15 });
    await playable(stage, room);
    const names = async (): Promise<string[]> => (await stage.api.request('GET', '/recording')).body.data;
    expect(await names()).not.toContain(room);
    expect((await fetchRecording(stage, room, 'index.m3u8')).status).toBe(404);

    await stage.api.deleteRoom(room);
    while (!(await names()).includes(room)) await new Promise((resolve) => setTimeout(resolve, 50));
    const playlist = await fetchRecording(stage, room, 'main.m3u8');
    expect(playlist.text).toContain('#EXT-X-PLAYLIST-TYPE:VOD');
    expect(playlist.text.trimEnd().endsWith('#EXT-X-ENDLIST')).toBe(true);
    expect((await fetchFile(stage, room, 'index.m3u8')).status).toBe(404);
    expect((await stage.api.request('DELETE', `/recording/${room}`)).status).toBe(204);
    expect(await names()).not.toContain(room);
  }, 60_000);

  test('files survive a later persistent stream of the same room id, whether or not it shows anything', async () => {
    const config = { roomId: 'standup', videoCodec: 'h264' } as const;
    const names = async (): Promise<string[]> =>
      ((await stage.api.request('GET', '/recording')).body.data as string[]).filter((id) => id.startsWith('standup'));
    const first = await stage.call(['ann'], config);
    await addStream(stage, 'standup', { persistent: true });
    await first.ann.addVideo({ colour: 'red', width: 320, height: 180, fps: 15 });
    await playable(stage, 'standup');
    await stage.api.deleteRoom('standup');
    while (!(await names()).includes('standup')) await new Promise((resolve) => setTimeout(resolve, 50));
    const { text } = await fetchRecording(stage, 'standup', 'main.m3u8');

    await stage.room(config);
    await addStream(stage, 'standup', { persistent: true });
    expect((await fetchRecording(stage, 'standup', 'main.m3u8')).text).toBe(text);
    await stage.api.deleteRoom('standup');
    expect((await fetchRecording(stage, 'standup', 'main.m3u8')).text).toBe(text);

    const second = await stage.call(['ann'], config);
    await addStream(stage, 'standup', { persistent: true });
    await second.ann.addVideo({ colour: 'blue', width: 320, height: 180, fps: 15 });
    await playable(stage, 'standup');
    await stage.api.deleteRoom('standup');
    while ((await names()).length < 2) await new Promise((resolve) => setTimeout(resolve, 50));
    const [newest, aside] = (await names()).toSorted();
    expect(newest).toBe('standup');
    expect(aside).toMatch(/^standup-\d{8}T\d{6}Z$/);
    expect((await fetchRecording(stage, aside!, 'main.m3u8')).text).toBe(text);
    expect((await fetchRecording(stage, 'standup', 'main.m3u8')).text).not.toBe(text);
  }, 90_000);

  test('files show only chosen people with manual subscription, and are not playable with sound alone', async () => {
    const { ann, bob, room } = await stage.call(['ann', 'bob'], { videoCodec: 'h264' });
    const component = await addStream(stage, room, { subscribeMode: 'manual' });
    await ann.addVideo({ colour: 'red', width: 320, height: 180, fps: 15 });
    await bob.addTone(440);
    await choose(stage, { room, component }, bob.id);

    // A playlist with black pictures appears, but the stream does not count as playable.
    while ((await fetchFile(stage, room, 'index.m3u8')).status !== 200) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect((await stage.api.room(room)).components[0].properties.playable).toBe(false);
    await choose(stage, { room, component }, ann.id);
    await playable(stage, room);
  }, 60_000);

  test('require a room that enforces h264, and exist for one stream per room', async () => {
    const vp8 = await stage.room({ videoCodec: 'vp8' });
    const refused = await stage.api.request('POST', `/room/${vp8}/component`, { type: 'hls', options: {} });
    expect(refused).toMatchObject({
      status: 400,
      body: { errors: `Incompatible video codec enforced in room ${vp8}` },
    });
    const room = await stage.room({ videoCodec: 'h264' });
    await addStream(stage, room);
    expect((await stage.api.request('POST', `/room/${room}/component`, { type: 'hls' })).body.errors).toBe(
      `Reached hls components limit for component in room ${room}`,
    );
  });
});
