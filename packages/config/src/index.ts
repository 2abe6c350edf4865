export { originAllowed, type OriginRequest, type OriginRule } from './check-origin.js';
export { ConfigError } from './errors.js';
export type { PortRange } from './grammar.js';
export { nearest } from './hints.js';
export { loadConfig, secretValues, wantsStructuredLogging, type LoadedConfig, type Machine } from './load-config.js';
export { printConfig } from './print-config.js';
export type { EffectiveValue, Environment } from './reader.js';
export type {
  ClusterSettings,
  ConfigWarning,
  HttpSettings,
  RecordingSettings,
  S3Credentials,
  Settings,
  WebrtcSettings,
} from './settings.js';
export { loadTls, type TlsSettings } from './tls.js';
export { PUBLIC_API_TOKEN, type Profile } from './variables.js';
export { hostOf } from './warnings.js';
