import type { CallEvent } from '../calls/call-options.js';
import { sdpAnswer, TestAgent } from './test-agent.js';

/** Returns a call that has been dialled. */
export function dial(transport: 'UDP' | 'TCP' = 'TCP') {
  const agent = new TestAgent(transport);
  const events: CallEvent[] = [];
  const call = agent.agent.dial({
    number: '+49301234',
    media: { address: '192.0.2.1', port: 40_000 },
    codecs: ['PCMU', 'PCMA'],
    ringTimeoutMs: 60_000,
    onEvent: (event) => events.push(event),
  });
  return { agent, events, call, types: () => events.map((event) => event.type) };
}

export const contact: readonly [string, string] = ['Contact', '<sip:phone@192.0.2.20:5062>'];
export const routes: readonly (readonly [string, string])[] = [
  ['Record-Route', '<sip:edge.test;lr>'],
  ['Record-Route', '<sip:core.test;lr>'],
];

/** Returns a call that has been answered and acknowledged. */
export function answered() {
  const setup = dial();
  const invite = setup.agent.request('INVITE');
  setup.agent.answer(invite, 200, { headers: [contact, ...routes], body: sdpAnswer() });
  const ack = setup.agent.request('ACK');
  return { ...setup, invite, ack };
}
