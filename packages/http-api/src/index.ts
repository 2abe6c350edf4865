export { createHttpApi, type Fallback, type HttpApi, type HttpApiOptions } from './app.js';
export type { ClusterView } from './cluster-operations.js';
export { HttpError } from './errors.js';
export {
  HttpListenError,
  openHttpListener,
  type HttpListener,
  type HttpListenerOptions,
  type UpgradeHandler,
} from './listener.js';
export type { NodeControl } from './operations.js';
export type { HealthReport } from './schemas/service.js';
export type { OnStep, RequestStep } from './steps.js';
