// The image's HEALTHCHECK: tells whether this container's node answers. Reads the node's settings.
import { request as plain } from 'node:http';
import { request as secure } from 'node:https';

const setting = (name) => process.env[`JF_${name}`] || process.env[`FJ_${name}`] || undefined;
const end = (well) => process.exit(well ? 0 : 1);

const ip = setting('IP') ?? '127.0.0.1';
const options = {
  // For a listener on all addresses, ask on loopback; otherwise ask where it listens.
  host: { '0.0.0.0': '127.0.0.1', '::': '::1' }[ip] ?? ip,
  port: setting('PORT') ?? 8080,
  path: '/health',
  // UTF-8 with one character per byte, since headers accept nothing else.
  headers: { authorization: Buffer.from(`Bearer ${setting('SERVER_API_TOKEN')}`).toString('latin1') },
  // The certificate is for the name that clients use.
  rejectUnauthorized: false,
};
const request = setting('SSL_KEY_PATH') === undefined ? plain : secure;
request(options, ({ statusCode }) => end(statusCode === 200))
  .on('error', () => end(false))
  .end();
