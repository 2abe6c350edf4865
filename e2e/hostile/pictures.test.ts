import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { pictures } from './attacks/pictures.js';
import { hostileSuite } from './harness/arena.js';

let resources: string | undefined;

hostileSuite('Hostile pictures', pictures, {
  needs: ['node-av'],
  env: async () => {
    resources = mkdtempSync(join(tmpdir(), 'bloom-hostile-pictures-'));
    return { JF_PUBLIC_MEDIA_FILES: 'true', JF_RESOURCES_BASE_PATH: resources };
  },
});

afterAll(() => {
  if (resources !== undefined) rmSync(resources, { recursive: true, force: true });
});
