/** The real peers of the SIP tests: kamailio as registrar and proxy, baresip and sipp as phones. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../harness/needs.js';
import type { Host } from '../hosts/lab.js';

/** Users who may register at the tests' registrar. */
export const password = 'correct-horse';

/** A program of the lab and its output. */
export class Program {
  output = '';
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.stdout?.on('data', (data: Buffer) => (this.output += data.toString()));
    child.stderr?.on('data', (data: Buffer) => (this.output += data.toString()));
  }

  /** Waits until the output matches. */
  async says(text: string, timeoutMs = 10_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!this.output.includes(text)) {
      if (performance.now() > deadline) throw new Error(`no ${JSON.stringify(text)} in:\n${this.output}`);
      await new Promise((wait) => setTimeout(wait, 20));
    }
  }

  /** Waits until it listens on that UDP port. */
  async listens(port: number): Promise<void> {
    const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')} `;
    const deadline = performance.now() + 5000;
    while (!this.#sockets().includes(wanted)) {
      if (this.#child.exitCode !== null) throw new Error(`ended before it listened on ${port}:\n${this.output}`);
      if (performance.now() > deadline) throw new Error(`does not listen on ${port}:\n${this.output}`);
      await new Promise((wait) => setTimeout(wait, 20));
    }
  }

  /** The kernel's table of the UDP sockets of its host. Empty once it has ended, even before its exit is reported. */
  #sockets(): string {
    try {
      return readFileSync(`/proc/${this.#child.pid}/net/udp`, 'utf8');
    } catch {
      return '';
    }
  }

  /** Resolves with the exit code when it ends by itself. */
  async exit(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'exit');
    return this.#child.exitCode;
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill(signal);
    // Some programs wait for their calls to end. Their children are killed too, because they would keep the port
    // without answering.
    const overdue = setTimeout(() => process.kill(-(this.#child.pid ?? 0), 'SIGKILL'), 5_000);
    await gone;
    clearTimeout(overdue);
  }
}

/**
 * Registrar and proxy on port 5060, UDP and TCP. Users register and call with `password`; calls to unregistered numbers
 * go to port 5060 of `trunk`, except 404, which is unknown, and 201, which goes to port 5062.
 */
export async function startKamailio(host: Host, folder: string, trunk: string): Promise<Program> {
  const modules = readdirSync('/usr/lib')
    .map((name) => join('/usr/lib', name, 'kamailio/modules'))
    .find((path) => {
      try {
        accessSync(join(path, 'tm.so'));
        return true;
      } catch {
        return false;
      }
    });
  const names = ['tm', 'sl', 'rr', 'pv', 'usrloc', 'registrar', 'auth', 'textops', 'siputils', 'maxfwd', 'tmx'];
  const config = `
debug=1
log_stderror=yes
children=2
tcp_children=2
auto_aliases=no
alias="pbx.lab.test"
listen=udp:${host.address}:5060
listen=tcp:${host.address}:5060
mpath="${modules}"
${names.map((name) => `loadmodule "${name}.so"`).join('\n')}
modparam("registrar", "min_expires", 4)
modparam("rr", "enable_full_lr", 1)
request_route {
  if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
  if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }
  if (has_totag()) {
    if (loose_route()) { t_relay(); exit; }
    if (is_method("ACK")) { if (t_check_trans()) t_relay(); exit; }
    sl_send_reply("404", "Not Here");
    exit;
  }
  t_check_trans();
  if (is_method("REGISTER")) {
    if (!pv_auth_check("lab.test", "${password}", "0", "1")) { auth_challenge("lab.test", "1"); exit; }
    save("location");
    exit;
  }
  if (!is_method("INVITE")) { sl_send_reply("405", "Method Not Allowed"); exit; }
  if (!pv_auth_check("lab.test", "${password}", "0", "1")) { proxy_challenge("lab.test", "1"); exit; }
  consume_credentials();
  record_route();
  if (!lookup("location")) {
    if ($rU == "404") { sl_send_reply("404", "Not Found"); exit; }
    $du = "sip:${trunk}:5060";
    if ($rU == "201") { $du = "sip:${trunk}:5062"; }
  }
  t_relay();
}
`;
  const file = join(folder, 'kamailio.cfg');
  writeFileSync(file, config);
  const args = ['-f', file, '-DD', '-E', '-m', '32', '-P', join(folder, 'kamailio.pid'), '-Y', folder];
  const program = new Program(host.start(findProgram('kamailio') as string, args));
  await program.listens(5060);
  return program;
}

export interface BaresipOptions {
  /** `user` registers at `registrar` with `password`. */
  user: string;
  registrar: string;
  /** A WAV file that it plays to its callers. */
  play: string;
  /** Default: G.711. */
  codec?: 'opus';
}

/** Starts a phone that answers every call and writes what it hears to WAV files in its folder. */
export async function startBaresip(host: Host, folder: string, options: BaresipOptions): Promise<Program> {
  mkdirSync(folder, { recursive: true });
  const modules = readdirSync('/usr/lib/baresip/modules').length > 0 ? '/usr/lib/baresip/modules' : '';
  writeFileSync(
    join(folder, 'config'),
    [
      `sip_listen ${host.address}:5060`,
      `audio_player aufile,${join(folder, 'heard.wav')}`,
      `audio_source aufile,${options.play}`,
      `module_path ${modules}`,
      options.codec === 'opus' ? 'module opus.so' : 'module g711.so',
      'module aufile.so',
      'module sndfile.so',
      `snd_path ${folder}`,
      'module_tmp uuid.so',
      'module_tmp account.so',
      'module_app menu.so',
      'net_interface eth0',
      '',
    ].join('\n'),
  );
  writeFileSync(
    join(folder, 'accounts'),
    `<sip:${options.user}@${options.registrar}>;auth_user=${options.user};auth_pass=${password};answermode=auto;regint=60\n`,
  );
  writeFileSync(join(folder, 'contacts'), '');
  writeFileSync(join(folder, 'uuid'), '0d5bbd6e-0000-4000-8000-3fa4c2a1b001');
  const program = new Program(host.start(findProgram('baresip') as string, ['-f', folder, '-v']));
  try {
    await program.says('200 OK');
  } catch (error) {
    await program.stop();
    throw error;
  }
  return program;
}

/** Starts a phone that plays a scenario for `calls` calls and exits with 0 if all went as written. */
export async function startSipp(
  host: Host,
  folder: string,
  options: { scenario: string; calls: number; port?: number },
): Promise<Program> {
  const { scenario, calls, port = 5060 } = options;
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'scenario.xml');
  writeFileSync(file, scenario);
  const args = [
    '-sf',
    file,
    '-i',
    host.address,
    '-p',
    String(port),
    '-m',
    String(calls),
    '-nostdin',
    '-rtp_echo',
    '-trace_err',
  ];
  const program = new Program(host.start(findProgram('sipp') as string, args, { cwd: folder }));
  await program.listens(port);
  return program;
}
