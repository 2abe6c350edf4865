export { DataClient } from './data-client.js';
export { TestClient } from './test-client.js';
export { Attribute, MessageClass, Method } from '../stun/constants.js';
export { StunWriter } from '../stun/writer.js';
