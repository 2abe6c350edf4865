export { type Clock, systemClock } from './clock.js';
export { ComponentError, type ComponentErrorCode } from './errors.js';
export { fileKind, type FileKindOptions } from './file/file-kind.js';
