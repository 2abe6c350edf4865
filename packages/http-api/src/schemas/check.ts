import type { PathCheck } from '@bloom/rooms';
import { z } from 'zod';

const TRANSPORTS = ['udp', 'tcp', 'tls'] as const;

const CheckRelay = z
  .strictObject({
    transport: z.enum(TRANSPORTS),
    url: z.string().meta({ examples: ['turn:203.0.113.7:50000?transport=udp'] }),
    username: z.string(),
    credential: z.string(),
  })
  .meta({ id: 'CheckRelay', description: 'A way to this node, as an ICE server for a browser' });

export const CheckCreated = z
  .strictObject({
    data: z.strictObject({
      relays: z.array(CheckRelay).meta({ description: 'The UDP relay has the address and port of the direct path' }),
      expires_at: z.number().meta({ description: 'When they end, milliseconds since the epoch' }),
    }),
  })
  .meta({ id: 'CheckResponse', description: 'What a browser needs to try the ways to this node' });

/** Returns the answer about a check. */
export function checkCreated({ endpoint, relay, expiresAt }: PathCheck): z.infer<typeof CheckCreated> {
  const { address, secondAddress, moreAddresses = [], port, tcpPort, tls } = endpoint;
  const own = secondAddress === undefined ? [address] : [address, secondAddress];
  const relayOf = (transport: (typeof TRANSPORTS)[number], host: string, relayPort: number) => ({
    transport,
    url: urlOf(transport, host, relayPort),
    username: relay.username,
    credential: relay.password,
  });

  return {
    data: {
      relays: [
        ...[...own, ...moreAddresses].map((each) => relayOf('udp', each, port)),
        ...(tcpPort === undefined ? [] : own.map((each) => relayOf('tcp', each, tcpPort))),
        ...(tls === undefined ? [] : [relayOf('tls', tls.host, tls.port)]),
      ],
      expires_at: expiresAt,
    },
  };
}

/** Returns the URI of a relay (RFC 7065 section 3.1). */
function urlOf(transport: (typeof TRANSPORTS)[number], host: string, port: number): string {
  const scheme = transport === 'tls' ? 'turns' : 'turn';

  return `${scheme}:${host.includes(':') ? `[${host}]` : host}:${port}?transport=${transport === 'udp' ? 'udp' : 'tcp'}`;
}
