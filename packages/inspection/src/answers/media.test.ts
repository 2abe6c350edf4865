import { expect, test } from '@jest/globals';
import type { Asker } from '../inspector/inspector.js';
import { Redactor } from '../inspector/redact.js';
import type { InspectionSources } from '../sources.js';
import { mediaAnswers } from './media.js';

test("computes rates over the interval only, even when a peer's media worker answered late", async () => {
  let looks = 0;
  const transport = { peerId: 'bob', iceState: 'connected', inbound: [], outbound: [], bytesReceived: 0 };
  const media = {
    endpointOf: () => ({ address: '127.0.0.1', port: 1, worker: 2 }),
    choiceOf: () => ({ worker: 2, because: 'least_busy', load: 0.1 }),
    stats: () => {
      looks += 1;
      // The first sample meets a busy worker.
      if (looks === 1) return new Promise(() => {});
      return Promise.resolve({ roomId: 'kitchen', transports: [{ ...transport, bytesSent: 4e9 + looks }] });
    },
  };
  const peer = { id: 'bob', status: 'connected', metadata: null, tracks: [] };
  const views = () => [{ id: 'kitchen', peers: [peer], components: [] }];
  const rooms = { views, media: () => media, clientOf: () => 'whip' };
  const answers = mediaAnswers({
    sources: { rooms, self: 'a@x' } as unknown as InspectionSources,
    redactor: new Redactor((text) => text),
    inspector: () => {
      throw new Error('nobody else is asked');
    },
  });
  const answer = await answers.peer?.({ room: 'kitchen', peer: 'bob', sampleMs: 100 }, { timeoutMs: 5_000 } as Asker);
  expect(answer?.client).toBe('whip');
  expect(answer?.transport?.usedBps).toBeLessThan(1_000);
  expect(answer?.transport).toMatchObject({ local: '127.0.0.1:1', worker: 2, why: 'was the least busy (0.10)' });
  expect(answer?.sampledMs).toBeLessThan(1_000);
});
