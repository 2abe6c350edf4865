import { createMediaEngine } from './create-media-engine.js';
import { describeEngine } from '../testing/engine-suite.js';

describeEngine('the engine in this thread', () =>
  createMediaEngine({ listenIp: '127.0.0.1', announcedIp: '127.0.0.1', portRange: { min: 0, max: 0 }, tcpPort: 0 }),
);
