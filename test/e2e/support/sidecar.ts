import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { SecretValues } from '../../../src/platform/mounted/secret-layout.ts';
import { formatAddress } from '../../../src/platform/net/address.ts';
import { type Sidecar, startSidecar } from '../../../src/sidecar/sidecar.ts';
import type { TokenSnapshot } from '../../../src/token/grant-report.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { leakedIn } from '../../support/leaked.ts';
import { captureLog } from '../../support/log-capture.ts';
import type { Verdict } from './upstream.ts';

export interface SidecarUnderTest {
  /** Where apps reach it, as `host:port`. */
  readonly address: string;
  /** Replaces what is mounted, as the kubelet does. */
  remount(files: SecretValues): Promise<void>;
  snapshot(): TokenSnapshot;
  /** Results and reasons of the grants so far, oldest first. */
  grants(): string[];
  /** One request of the app, through the proxy. */
  request(): Promise<AppAnswer>;
  stop(): Promise<void>;
}

export interface AppAnswer {
  readonly status: number;
  /** The proxy's own error, when it answered itself. */
  readonly error: string | null;
  readonly body: Verdict;
}

export interface SidecarUnderTestOptions {
  /** The credential as in the configuration file, without name and directory. */
  readonly credential: Readonly<Record<string, unknown>>;
  /** The mounted files. */
  readonly files: SecretValues;
  readonly upstream: { readonly url: string };
  /** Further settings of the route to it, and of the whole, as in the configuration file. */
  readonly route?: Readonly<Record<string, unknown>>;
  readonly settings?: Readonly<Record<string, unknown>>;
}

/**
 * The real sidecar with a configuration file and a mounted Secret. When the test ends it is stopped, and all that it
 * logged is searched for what was mounted and for tokens.
 */
export async function runSidecar(options: SidecarUnderTestOptions): Promise<SidecarUnderTest> {
  const secret = await mountSecret(options.files);
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-e2e-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'token-sidecar.yaml');
  const config = {
    listen: '127.0.0.1:0',
    admin: { listen: '127.0.0.1:0' },
    credentials: [{ name: 'default', dir: secret.directory, ...options.credential }],
    routes: [{ name: 'default', upstream: options.upstream.url, ...options.route }],
    ...options.settings,
  };
  await writeFile(file, JSON.stringify(config));
  const { log, lines } = captureLog();
  const sidecar = await startSidecar({
    config: await loadConfig({ config: { key: '--config', text: file } }),
    log,
    quit: () => undefined,
  });
  const mounted = [options.files];
  const source = sidecar.tokens[0] as Sidecar['tokens'][number];
  /** Whatever the provider gave, used or not. */
  const tokens = new Set<string>();
  const keep = () => void tokens.add(source.held()?.token ?? '');
  source.onToken(keep);
  keep();
  onTestFinished(async () => {
    await sidecar.stop();
    expect(leakedIn(lines.join('\n'), [...mounted.flatMap(secretsOf), ...tokens])).toEqual([]);
  });
  const address = formatAddress(sidecar.proxyAddress);
  return {
    address,
    async remount(files) {
      mounted.push(files);
      await secret.update(files);
    },
    snapshot: () => source.snapshot(),
    grants: () => source.grants().latest.map(({ reason, result }) => `${reason} ${result}`),
    async request() {
      const response = await fetch(`http://${address}/`, {
        headers: { connection: 'close' },
      });
      const error = response.headers.get('token-sidecar-error');
      return { status: response.status, error, body: (await response.json()) as Verdict };
    },
    stop: () => sidecar.stop(),
  };
}

/** The contents of all files but the client id. */
export function secretsOf({ client_id: _, ...secrets }: SecretValues): string[] {
  return Object.values(secrets).map(String);
}
