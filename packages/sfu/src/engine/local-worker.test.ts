import { openMediaEngine } from './open-media-engine.js';
import { describeEngineContract } from '../testing/engine-contract.js';
import { describeEngine } from '../testing/engine-suite.js';
import { describeReceivers } from '../testing/receiver-suite.js';

const LOCAL = { listenIp: '127.0.0.1', announcedIp: '127.0.0.1', portRange: { min: 0, max: 0 }, tcpPort: 0 };

describeEngine('the engine in this thread', () => openMediaEngine(LOCAL));
describeEngineContract('one thread', () => openMediaEngine(LOCAL));
describeReceivers('one thread', () => openMediaEngine(LOCAL));
