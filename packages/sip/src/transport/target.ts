/** Transport of one hop. */
export type TransportName = 'UDP' | 'TCP';

export interface Target {
  transport: TransportName;
  /** An IP address, IPv6 without brackets. */
  host: string;
  port: number;
}

export function sameTarget(a: Target, b: Target): boolean {
  return a.transport === b.transport && a.host === b.host && a.port === b.port;
}

export function targetText(target: Target): string {
  return `${target.transport} ${target.host}:${target.port}`;
}
