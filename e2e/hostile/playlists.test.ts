import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { makeSources } from '../hls/sources.js';
import { playlists, RECORDING } from './attacks/playlists.js';
import { hostileSuite } from './harness/arena.js';

let resources: string | undefined;

hostileSuite('Hostile playlists', playlists, {
  needs: ['node-av', 'ffmpeg'],
  env: async () => {
    resources = mkdtempSync(join(tmpdir(), 'bloom-hostile-'));
    await makeSources(resources);
    const recording = join(resources, 'recordings', RECORDING.id);
    mkdirSync(recording, { recursive: true });
    writeFileSync(join(recording, 'main.m3u8'), '#EXTM3U\n#EXT-X-ENDLIST\n');
    writeFileSync(join(recording, RECORDING.fileName), Buffer.alloc(RECORDING.size));
    return { JF_PUBLIC_MEDIA_FILES: 'true', JF_RESOURCES_BASE_PATH: resources };
  },
});

afterAll(() => {
  if (resources !== undefined) rmSync(resources, { recursive: true, force: true });
});
