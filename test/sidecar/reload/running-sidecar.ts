import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { readConfigText } from '../../../src/platform/files/bounded-file.ts';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { formatAddress } from '../../../src/platform/net/address.ts';
import { type Clock, systemClock } from '../../../src/platform/time/clock.ts';
import { PAUSE_MS } from '../../../src/sidecar/reload/follow-file.ts';
import { type Sidecar, startSidecar } from '../../../src/sidecar/sidecar.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';

const FILE = 'token-sidecar.yaml';

/** An API that answers what came as Authorization, unless told otherwise. */
export async function startApi(
  answer = (request: IncomingMessage, response: ServerResponse): void => {
    response.end(request.headers.authorization ?? 'nothing');
  },
): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The directory of a mounted client. */
export async function mountClient(): Promise<string> {
  return (await mountSecret({ client_id: 'shop', client_secret: 'one' })).directory;
}

/** On which the next change may follow soon after the last one. */
const briskClock: Clock = {
  ...systemClock,
  after: (delayMs, callback) => systemClock.after(delayMs === PAUSE_MS ? PAUSE_MS / 20 : delayMs, callback),
};

/** A whole sidecar whose configuration is a mounted ConfigMap. */
export class RunningSidecar {
  readonly sidecar: Sidecar;
  readonly lines: readonly string[];
  /** Swaps another configuration in, as the kubelet does; JSON unless it is text. */
  readonly write: (config: object | string) => Promise<void>;
  readonly #waiting: (() => void)[];

  private constructor(parts: Pick<RunningSidecar, 'sidecar' | 'lines' | 'write'>, waiting: (() => void)[]) {
    this.sidecar = parts.sidecar;
    this.lines = parts.lines;
    this.write = parts.write;
    this.#waiting = waiting;
  }

  /** @param clock goes with the system's unless given, and knows no long pause between two changes. */
  static async start(config: object, clock: Clock = briskClock): Promise<RunningSidecar> {
    const textOf = (one: object | string): string =>
      typeof one === 'string' ? one : JSON.stringify(whole(one));
    const volume = await mountSecret({ [FILE]: textOf(config) });
    const path = join(volume.directory, FILE);
    const lines: string[] = [];
    const waiting: (() => void)[] = [];
    const write = (line: string): void => {
      lines.push(line);
      for (const wake of waiting.splice(0)) wake();
    };
    const load = (changed?: string) => loadConfig({ config: { key: '--config', text: path } }, [], changed);
    const text = await readConfigText(path);
    const loaded = await load(text);
    const log = createLogger(loaded.logLevel, { write });
    const sidecar = await startSidecar({
      config: loaded,
      file: { path, text, load },
      log,
      quit: () => {},
      clock,
    });
    onTestFinished(() => sidecar.stop());
    return new RunningSidecar(
      { sidecar, lines, write: (next) => volume.update({ [FILE]: textOf(next) }) },
      waiting,
    );
  }

  /** Resolves with the first line that has this text, be it past or yet to come; fails where there is none. */
  async logged(text: string): Promise<Record<string, unknown>> {
    for (;;) {
      const line = this.lines.find((one) => one.includes(text));
      if (line !== undefined) return JSON.parse(line);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Writes it, and resolves once it is in use. */
  async change(config: object): Promise<void> {
    const generation = (await this.status()).generation + 1;
    await this.write(config);
    await this.logged(`"generation":${generation},`);
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`http://${formatAddress(this.sidecar.proxyAddress)}${path}`, {
      headers: { connection: 'close', ...headers },
    });
  }

  admin(path: string): Promise<Response> {
    return fetch(`http://${formatAddress(this.sidecar.adminAddress)}${path}`);
  }

  async text(path: string): Promise<string> {
    return await (await this.admin(path)).text();
  }

  // biome-ignore lint/suspicious/noExplicitAny: it is what a program reads of it.
  async status(): Promise<any> {
    return ((await (await this.admin('/api/status')).json()) as { configuration: unknown }).configuration;
  }

  /** The value of a series, as it stands in the text; undefined where there is none. */
  async metric(series: string): Promise<number | undefined> {
    const text = await (await this.admin('/metrics')).text();
    const line = text.split('\n').find((one) => one.startsWith(`token_sidecar_${series} `));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  }
}

/** With listeners that are nobody else's. */
function whole(config: object): object {
  return { listen: '127.0.0.1:0', admin: { listen: '127.0.0.1:0' }, ...config };
}
