export { freeTcpPort, freeUdpRange } from './free-ports.js';
