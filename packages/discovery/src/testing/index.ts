export { listenOnBoth, NameServer, type NameServerAnswer } from './name-server.js';
export { machineFiles, testResolver, type TestMachine } from './test-resolver.js';
