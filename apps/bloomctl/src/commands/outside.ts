import { EXIT, Failure } from '../exit.js';
import { checkPlan, DEFAULT_CEILING, forwardedTracks, type Plan } from '../loadtest/plan.js';
import { Server, serverUrl } from '../outside/server.js';
import { findToken } from '../outside/token.js';
import { loadLine, loadTitles, loadVerdict } from '../views/loadtest.js';
import { trialView } from '../views/trial.js';
import { decimal, timeout, whole } from '../values.js';
import { type Commands, timeOption } from './define.js';

/** Commands that test a deployment from outside, over HTTP, websockets and WebRTC as its clients do. */
export function outsideCommands({ program, run }: Commands): void {
  program
    .command('try')
    .argument('<url>', 'https://media.example.com: the address that clients use')
    .description('call a deployment from outside, over each path that it announces')
    .option('--token-file <file>', 'API token, invitation or token of a peer; default: BLOOM_TOKEN')
    .addOption(timeOption('--within <time>', 'for media to come back over each path', '15s').argParser(timeout))
    .action(
      run<{ tokenFile?: string; within: number }>(async ({ machine, options, output }, [url = ''], own) => {
        // Load on demand: werift takes longer to load than everything else together.
        const { Trial } = await import('../outside/trial.js');
        const server = new Server(serverUrl(url), options.timeout);
        const wanted = 'the API token of the server, an invitation or the token of a peer';
        const token = await findToken(own.tokenFile, machine, wanted);
        const trial = new Trial({ server, token, timeoutMs: options.timeout, withinMs: own.within });
        const ended = await Promise.race([trial.run(), machine.interrupted.then(() => 'interrupted' as const)]);
        await trial.close();
        const { steps, exit, room } = trial;
        const fields = {
          ok: exit === EXIT.ok && ended === undefined,
          url: server.url.href,
          as: token.kind,
          room,
          steps,
        };
        output.answer('try', fields, (screen) => trialView(steps, screen));
        return ended === 'interrupted' ? EXIT.interrupted : exit;
      }),
    );

  program
    .command('loadtest')
    .argument('<url>', 'https://media.example.com: the address that clients use')
    .description('load a deployment with people from here until packets are lost or late')
    .option('--token-file <file>', 'the API token; default: BLOOM_TOKEN')
    .option('--rooms <n>', 'rooms at the end', whole(1, 10_000), 1)
    .option('--people <n>', 'people in each room', whole(2, 1_000), 4)
    .option('--publishers <n>', 'people in each room who publish a video', whole(1, 1_000), 1)
    .option('--minutes <n>', 'length of the whole test', decimal(0.05, 1_440), 2)
    .option('--kbps <n>', 'bitrate of each video', whole(8, 20_000), 500)
    .option('--ceiling <n>', 'forwarded tracks that the test may reach', whole(1, 1_000_000), DEFAULT_CEILING)
    .option('--metrics <url>', 'metrics of a node, http://10.0.0.1:9568, to tell which limit comes first')
    .action(
      run<LoadTestFlags>(async ({ machine, options, output }, [url = ''], own) => {
        const { rooms, people, publishers, minutes, kbps } = own;
        const plan: Plan = { rooms, people, publishers, minutes, kbps };
        checkPlan(plan, own.ceiling);
        const { LoadTest } = await import('../loadtest/load-test.js');
        const server = new Server(serverUrl(url), options.timeout);
        const token = await findToken(own.tokenFile, machine);
        if (token.kind !== 'api') {
          throw new Failure(EXIT.rights, 'a load test creates rooms, which only the API token may do', {
            advice: `the token from ${token.source} is that of ${token.kind === 'peer' ? 'a peer' : 'an invitation'}`,
          });
        }
        const metricsUrl = own.metrics === undefined ? undefined : metricsAddress(own.metrics);
        const isText = output.format === 'text';
        if (isText) output.lines([loadTitles()]);
        const test = new LoadTest({
          server,
          token,
          plan,
          metricsUrl,
          timeoutMs: options.timeout,
          onStep: (step) => {
            if (isText) output.lines([loadLine(step, output.screen)]);
            else output.say(`${step.people} people, ${Math.round(step.packetsPerS)} packets/s`);
          },
        });
        let ended: 'interrupted' | void;
        try {
          ended = await Promise.race([test.run(), machine.interrupted.then(() => 'interrupted' as const)]);
        } finally {
          await test.close();
        }
        const { steps, limit } = test;
        const ok = limit === null && ended === undefined;
        const fields = { ok, url: server.url.href, ...plan, forwardedTracks: forwardedTracks(plan), steps, limit };
        output.answer('loadtest', fields, (screen) => loadVerdict(steps, screen));
        if (ended === 'interrupted') return EXIT.interrupted;
        return limit === null ? EXIT.ok : EXIT.no;
      }),
    );
}

/** Completes the address of a node's metrics, which always have the same path. @throws Failure */
function metricsAddress(text: string): string {
  return new URL('metrics', new URL('/', serverUrl(text))).href;
}

interface LoadTestFlags extends Plan {
  readonly tokenFile?: string;
  readonly ceiling: number;
  readonly metrics?: string;
}
