/** The address that clients send media to, if the settings name it indirectly. */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIP, isIPv6 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { ConfigError, type Settings } from '@bloom/config';
import type { Log } from '@bloom/log';
import { addressBytes } from '@bloom/net';

/** Interval at which requests are repeated, since datagrams get lost (RFC 8489 section 6.2.1). */
const REPEAT_MS = 500;
const ANSWER_MS = 5_000;

type Server = { host: string; port: number };

/**
 * Returns the settings with a literal `JF_WEBRTC_TURN_IP`: resolves a host name, asks the STUN server for `auto`.
 * @throws ConfigError when no address is found
 */
export async function withMediaAddress(settings: Settings, log: Log): Promise<Settings> {
  const { webrtc } = settings;
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

async function resolved(variable: string, host: string, family: 4 | 6): Promise<string> {
  try {
    return (await lookup(host, { family })).address;
  } catch (cause) {
    throw new ConfigError(
      variable,
      `the host name ${JSON.stringify(host)} of ${variable} has no IPv${family} address`,
      {
        cause,
      },
    );
  }
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
