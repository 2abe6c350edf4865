/** The address that clients send media to, if the settings name it indirectly. */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP, isIPv6 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { ConfigError, type Settings } from '@bloom/config';
import { systemResolver } from '@bloom/discovery';
import type { Log } from '@bloom/log';
import { addressBytes } from '@bloom/net';

/** Interval at which requests are repeated, since datagrams get lost (RFC 8489 section 6.2.1). */
const REPEAT_MS = 500;
const ANSWER_MS = 5_000;

type Server = { host: string; port: number };

/** Addresses for documentation, which only a default route reaches (RFC 5737, RFC 3849). Nothing is sent to them. */
const ELSEWHERE = { udp4: '192.0.2.1', udp6: '2001:db8::1' } as const;

/**
 * Returns the settings with literal media addresses: resolves a host name of `JF_WEBRTC_TURN_IP`, asks the STUN server
 * for `auto`, and finds the addresses of this machine.
 * @throws ConfigError when no address is found
 */
export async function withMediaAddress(settings: Settings, log: Log): Promise<Settings> {
  const { webrtc } = settings;
  if (webrtc?.more === 'machine') return { ...settings, webrtc: { ...webrtc, more: await machineAddresses() } };
  if (webrtc === null || isIP(webrtc.turnIp) !== 0) return settings;
  const { turnIp: given, turnListenIp, stunServer } = webrtc;
  const family = isIPv6(turnListenIp) ? 6 : 4;
  const turnIp =
    given === 'auto' && stunServer !== null
      ? await publicAddress(stunServer, family)
      : await resolved('JF_WEBRTC_TURN_IP', given, family);
  log.info('media.address_found', { given, address: turnIp });

  return { ...settings, webrtc: { ...webrtc, turnIp } };
}

/** Returns the address of each family that packets to the default gateway come from; none without such a route. */
async function machineAddresses(): Promise<string[]> {
  const found = await Promise.all((['udp4', 'udp6'] as const).map(ownAddress));

  return found.filter((address) => address !== undefined);
}

/** Resolves with undefined without a route, or with one that leads to loopback or a single link. */
async function ownAddress(family: 'udp4' | 'udp6'): Promise<string | undefined> {
  const socket = createSocket(family);
  try {
    const connected = once(socket, 'connect');
    socket.connect(9, ELSEWHERE[family]);
    await connected;
    const { address } = socket.address();

    return /^(?:127\.|169\.254\.|::1?$|fe80:)/i.test(address) ? undefined : address;
  } catch {
    return undefined;
  } finally {
    socket.close();
  }
}

async function resolved(variable: string, host: string, family: 4 | 6): Promise<string> {
  const found = await systemResolver()
    .addresses(host, { family })
    .catch((cause: unknown) => cause as Error);
  if (!(found instanceof Error)) return found[0]!;
  throw new ConfigError(variable, `the host name ${JSON.stringify(host)} of ${variable} has no IPv${family} address`, {
    cause: found,
  });
}

async function publicAddress({ host, port }: Server, family: 4 | 6): Promise<string> {
  const { bindingAddress, bindingRequest } = await import('@bloom/webrtc');
  const address = await resolved('JF_STUN_SERVER', host, family);
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  const transactionId = randomBytes(12);
  const request = bindingRequest(transactionId);
  try {
    return await new Promise<string>((resolve, reject) => {
      const fail = (why: string): void =>
        reject(
          new ConfigError(
            'JF_STUN_SERVER',
            `JF_WEBRTC_TURN_IP=auto: the STUN server ${host}:${port} of JF_STUN_SERVER ${why}`,
          ),
        );
      const send = (): void =>
        socket.send(request, port, address, (error) => {
          if (error !== null) fail(`cannot be asked: ${error.message}`);
        });
      const repeat = setInterval(send, REPEAT_MS);
      const late = setTimeout(() => fail(`did not answer within ${ANSWER_MS / 1_000} s`), ANSWER_MS);
      socket.once('close', () => {
        clearInterval(repeat);
        clearTimeout(late);
      });
      socket.on('error', (error) => fail(`cannot be asked: ${error.message}`));
      socket.on('message', (datagram, from) => {
        if (from.port !== port || !isDeepStrictEqual(addressBytes(from.address), addressBytes(address))) return;
        const seen = bindingAddress(datagram, transactionId);
        if (seen !== undefined) resolve(seen);
      });
      send();
    });
  } finally {
    socket.close();
  }
}
