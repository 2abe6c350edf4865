// The two cluster deployments that Bloom documents, as one table: `scripts/write-compose.mjs` turns it into compose files
// for users, and the end-to-end tests run the same nodes on hosts made of network namespaces.

const common = {
  JF_SERVER_API_TOKEN: 'development',
  JF_SECRET_KEY_BASE: 'change-me-and-keep-equal',
  JF_DIST_ENABLED: 'true',
};

/**
 * @typedef {object} Service
 * @property {string} name hostname of the container
 * @property {number} port HTTP port, published on the machine
 * @property {Record<string, string>} env
 *
 * @typedef {object} Deployment
 * @property {string} title
 * @property {string} about
 * @property {string} network
 * @property {string | undefined} alias DNS name that stands for all services
 * @property {Service[]} services
 */

/** @type {Record<'nodes-list' | 'dns', Deployment>} */
export const deployments = {
  'nodes-list': {
    title: 'Two nodes that find each other by a list of names',
    about: 'Short names work inside one container network. Every node may share one list: its own name is ignored.',
    network: 'bloom-network',
    alias: undefined,
    services: ['app1', 'app2'].map((name, i) => ({
      name,
      port: 4001 + i,
      env: { ...common, JF_DIST_NODE_NAME: `app@${name}`, JF_DIST_NODES: 'app@app1 app@app2' },
    })),
  },
  dns: {
    title: 'Two nodes that find each other by DNS',
    about: 'All containers answer to one network alias; every node asks for its addresses again and again.',
    network: 'dns-network',
    alias: 'app.dns-network',
    services: ['app1', 'app2'].map((name, i) => ({
      name,
      port: 4001 + i,
      env: { ...common, JF_DIST_MODE: 'name', JF_DIST_STRATEGY_NAME: 'DNS', JF_DIST_QUERY: 'app.dns-network' },
    })),
  },
};
