// What a check of the network and the devices has found, in words for the person and the network's administrator.

export const CHECKS = ['camera', 'microphone', 'sound', 'udp', 'tcp', 'tls'] as const;
export type CheckName = (typeof CHECKS)[number];
export type Transport = 'udp' | 'tcp' | 'tls';

export const TITLES: Readonly<Record<CheckName, string>> = {
  camera: 'Camera',
  microphone: 'Microphone',
  sound: 'Loudspeaker',
  udp: 'UDP',
  tcp: 'TCP',
  tls: 'TLS',
};

export interface Finding {
  /** `absent`: there is nothing to check. */
  readonly state: 'good' | 'bad' | 'absent';
  readonly text: string;
  /** What to do, or what to ask the network's administrator for. */
  readonly ask?: string;
  /** Time until packets came back. */
  readonly ms?: number;
}

export type Findings = Readonly<Partial<Record<CheckName, Finding>>>;

/** Outcome of a try of one way to the server: the time, or what the browser said. */
export type PathOutcome = { readonly ms: number } | { readonly refused: boolean };

const WAYS: Readonly<Record<Transport, string>> = {
  udp: 'UDP, the best way for picture and sound',
  tcp: 'TCP, for networks without UDP',
  tls: 'TLS, for networks that pass web pages only',
};

const PASS: Readonly<Record<Transport, (host: string, port: string) => string>> = {
  udp: (host, port) =>
    `Ask the administrator of the network to let UDP pass to ${host}, port ${port}, and its answers back.`,
  tcp: (host, port) => `Ask the administrator of the network to let TCP connections to ${host}, port ${port} pass.`,
  tls: (host, port) =>
    `Ask the administrator of the network to let TLS connections to ${host}, port ${port} pass unopened: a proxy that reads them cannot pass a call.`,
};

/** Returns `203.0.113.7` and `50000` of `turn:203.0.113.7:50000?transport=udp`. */
export function addressOf(url: string): { host: string; port: string } {
  const [, host = '', port = ''] = /^turns?:(\[[^\]]+\]|[^:]+):(\d+)/.exec(url) ?? [];
  return { host, port };
}

/** Words a try of one way; `url` is that of the relay. */
export function pathFinding(transport: Transport, url: string, outcome: PathOutcome): Finding {
  const { host, port } = addressOf(url);
  if ('ms' in outcome) return { state: 'good', text: `Packets pass over ${WAYS[transport]}.`, ms: outcome.ms };
  if (outcome.refused) {
    return {
      state: 'bad',
      text: `Something answers at ${host}, port ${port}, but it is not this server, or it is too busy.`,
      ask: 'Check again. If the problem persists, tell the operator of this server.',
    };
  }

  return {
    state: 'bad',
    text: `No packets pass over ${WAYS[transport]}, to ${host}, port ${port}.`,
    ask: PASS[transport](host, port),
  };
}

/** The server does not offer this way. */
export function notOffered(transport: Transport): Finding {
  return { state: 'absent', text: `This server does not offer ${WAYS[transport]}.` };
}

/** Returns one sentence about the network; undefined while it is being checked. */
export function verdictOf({ udp, tcp, tls }: Findings): string | undefined {
  if (udp === undefined || tcp === undefined || tls === undefined) return undefined;
  if (udp.state === 'good') return 'Calls work from this network.';
  const other = tcp.state === 'good' ? 'TCP' : tls.state === 'good' ? 'TLS' : undefined;
  if (other !== undefined) return `Calls work from this network over ${other}, with more delay than over UDP.`;

  return 'Calls do not work from this network. Leave any VPN, or try another network, such as mobile data.';
}

interface ReportOptions {
  readonly server: string;
  readonly browser: string;
  readonly at: Date;
}

/** Returns the result as text to send to somebody. It has no token. */
export function reportOf(findings: Findings, { server, browser, at }: ReportOptions): string {
  const lines = CHECKS.flatMap((name) => {
    const finding = findings[name];
    if (finding === undefined) return [];
    const { state, text, ask, ms } = finding;
    const mark = { good: 'ok  ', bad: 'FAIL', absent: '-   ' }[state];
    const time = ms === undefined ? '' : ` (${ms} ms)`;
    return [`${mark} ${TITLES[name]}: ${text}${time}`, ...(ask === undefined ? [] : [`     ${ask}`])];
  });

  return [`Check of ${server}, ${at.toISOString()}`, verdictOf(findings) ?? '', ...lines, browser].join('\n');
}
