/** The port mapper of a machine (epmd): knows which node listens on which port. */
export { lookUp, type MapperAddress, names } from './client.js';
export { PortMapperError, type PortMapperErrorCode } from './errors.js';
export { type DetachedMapper, ensureMapper } from './launch.js';
export { DEFAULT_PORT, type NamesAnswer, type NodeEntry } from './protocol.js';
export { Registration, type RegistrationOptions } from './registration.js';
export { PortMapperServer, type ServerOptions } from './server.js';
