// A machine's port mapper as a program, in place of Erlang's epmd. Reads the same variables: ERL_EPMD_PORT (default
// 4369) and ERL_EPMD_ADDRESS (comma-separated addresses to listen on besides loopback; default none).
import { createLogger } from '@bloom/log';
import { DEFAULT_PORT, PortMapperError, PortMapperServer } from '@bloom/port-mapper';

const { ERL_EPMD_PORT: portText, ERL_EPMD_ADDRESS: addressText } = process.env;

const port = portText === undefined || portText === '' ? DEFAULT_PORT : Number(portText);
const addresses = (addressText ?? '')
  .split(',')
  .map((address) => address.trim())
  .filter((address) => address !== '');

if (!Number.isInteger(port) || port < 1 || port > 65_535) {
  console.error(`ERL_EPMD_PORT is not a port: ${portText}`);
  process.exit(1);
}

try {
  const log = createLogger();
  const server = await PortMapperServer.open({ port, addresses, log });
  log.info('port_mapper.listening', { port: server.port, addresses: ['loopback', ...addresses].join(' ') });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void server.close());
  await server.closed;
} catch (error) {
  if (error instanceof PortMapperError && error.code === 'PORT_MAPPER_RUNNING') console.log(error.message);
  else {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
