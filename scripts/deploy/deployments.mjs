// The table of documented deployments. `scripts/deploy/write.mjs` turns it into the compose files of
// deploy/, and end-to-end tests run the same nodes, in containers and on hosts made of network namespaces.
// `${NAME:-default}` in a value is filled in by compose from the environment or deploy/.env; `:?` makes it required.

/** Ports that the image uses inside every container. */
const METRICS_PORT = 9568;
const TURN_TCP_PORT = 3478;
/** UDP ports of each node. Each media worker uses one, so this suffices for as many cores. */
const MEDIA_PORTS = 16;
const FIRST_MEDIA_PORT = 50_000;

/** HTTPS inside the container of a node that ends TLS itself; outside it is 443. */
const TLS_PORT = 8443;

const DRAIN = {
  // A stopped node accepts no new rooms, and ends with its last room or after an hour.
  JF_DRAIN_TIMEOUT: '${BLOOM_DRAIN_TIMEOUT:-3600}',
};
const GRACE_PERIOD = '61m';

/**
 * @typedef {object} Service
 * @property {string} name hostname of the container
 * @property {number} port HTTP port of the node
 * @property {Record<string, string>} env settings that make the cluster
 * @property {Record<string, string>} clients settings that let clients outside the container network reach the node
 * @property {string[]} ports published ports, `<outside>:<inside>[/udp]`
 * @property {true} [certificate] whether the node gets a certificate from the service of that name
 *
 * @typedef {object} Deployment
 * @property {string} title
 * @property {string} about
 * @property {string} network
 * @property {string | undefined} alias DNS name of all services
 * @property {Service[]} services
 */

const mediaRange = (index) => {
  const first = FIRST_MEDIA_PORT + index * MEDIA_PORTS;
  return `${first}-${first + MEDIA_PORTS - 1}`;
};

const media = (index, tcpPort) => ({
  JF_WEBRTC_TURN_IP: '${BLOOM_PUBLIC_IP:-127.0.0.1}',
  JF_WEBRTC_TURN_PORT_RANGE: mediaRange(index),
  JF_WEBRTC_TURN_TCP_PORT: String(tcpPort),
});

const cluster = {
  JF_SERVER_API_TOKEN: '${BLOOM_API_TOKEN:-development}',
  JF_SECRET_KEY_BASE: '${BLOOM_SECRET_KEY_BASE:-change-me-and-keep-equal}',
  JF_DIST_ENABLED: 'true',
  JF_DIST_COOKIE: '${BLOOM_COOKIE:-change-me-too-and-keep-equal}',
};

const clusterService = (env) => (name, index) => {
  const [port, tcpPort] = [4001 + index, TURN_TCP_PORT + index];
  return {
    name,
    port,
    env: { ...cluster, ...env(name) },
    clients: {
      JF_HOST: `\${BLOOM_HOST:-localhost}:${port}`,
      JF_CHECK_ORIGIN: '${BLOOM_ORIGINS:-true}',
      ...media(index, tcpPort),
      ...DRAIN,
    },
    ports: [`${port}:${port}`, `${tcpPort}:${tcpPort}`, `${mediaRange(index)}:${mediaRange(index)}/udp`],
  };
};

/** @type {Record<'single' | 'nodes-list' | 'dns', Deployment>} */
export const deployments = {
  single: {
    title: 'One node with TLS, metrics and alerts',
    about: 'Certbot fetches the certificate; Prometheus has the alert rules of Bloom, Grafana its dashboard.',
    network: 'bloom',
    alias: undefined,
    services: [
      {
        name: 'bloom',
        port: TLS_PORT,
        env: {
          JF_SERVER_API_TOKEN: '${BLOOM_API_TOKEN:?is the password of your backend}',
          JF_SECRET_KEY_BASE: '${BLOOM_SECRET_KEY_BASE:?is a long random text that signs the tokens of clients}',
        },
        clients: {
          JF_HOST: '${BLOOM_DOMAIN:?is the name that clients use, such as media.example.com}',
          JF_CHECK_ORIGIN: '${BLOOM_ORIGINS:-true}',
          JF_STRUCTURED_LOGGING: 'true',
          JF_SSL_CERT_PATH: '/certificate/cert.pem',
          JF_SSL_KEY_PATH: '/certificate/key.pem',
          ...media(0, TURN_TCP_PORT),
          JF_WEBRTC_TURN_IP: '${BLOOM_PUBLIC_IP:?is the address that clients send media to}',
          // Same as the HTTP port: networks that pass only TCP 443 carry their media there.
          JF_WEBRTC_TURN_TLS_PORT: String(TLS_PORT),
          ...DRAIN,
        },
        certificate: true,
        // The metrics can be reached only from inside.
        ports: [`443:${TLS_PORT}`, `${TURN_TCP_PORT}:${TURN_TCP_PORT}`, `${mediaRange(0)}:${mediaRange(0)}/udp`],
      },
    ],
  },
  'nodes-list': {
    title: 'Two nodes that find each other by a list of names',
    about: 'Short names work inside one container network. Every node may share one list: its own name is ignored.',
    network: 'bloom-network',
    alias: undefined,
    services: ['app1', 'app2'].map(
      clusterService((name) => ({ JF_DIST_NODE_NAME: `app@${name}`, JF_DIST_NODES: 'app@app1 app@app2' })),
    ),
  },
  dns: {
    title: 'Two nodes that find each other by DNS',
    about: 'All containers answer to one network alias; every node asks for its addresses again and again.',
    network: 'dns-network',
    alias: 'app.dns-network',
    services: ['app1', 'app2'].map(
      clusterService(() => ({
        JF_DIST_MODE: 'name',
        JF_DIST_STRATEGY_NAME: 'DNS',
        JF_DIST_QUERY: 'app.dns-network',
      })),
    ),
  },
};

/** Returns all settings of a deployment's node, in the order of the compose file. */
export const environmentOf = ({ port, env, clients }) => ({ ...clients, JF_PORT: String(port), ...env });

/**
 * Fills in `${NAME}`, `${NAME:-default}` and `${NAME:?reason}` as compose does.
 * @throws Error for a required variable without a value
 */
export function interpolate(text, values) {
  return text.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (...[, name, kind, rest]) => {
    const value = values[name];
    if (value !== undefined && value !== '') return value;
    if (kind === '?') throw new Error(`${name} is not set: it ${rest}`);
    return kind === '-' ? rest : '';
  });
}

export { GRACE_PERIOD, METRICS_PORT };
