import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { leakedIn } from '../../support/leaked.ts';
import { RunningCommand } from '../../support/run-command.ts';
import { type AppAnswer, type SidecarUnderTestOptions, secretsOf } from './sidecar.ts';
import type { Verdict, VerifyingUpstream } from './upstream.ts';

export interface SidecarProcessOptions extends SidecarUnderTestOptions {
  readonly upstream: Pick<VerifyingUpstream, 'url' | 'tokens'>;
  /** By so many seconds its wall clock is ahead of the provider's; behind where negative. */
  readonly aheadSeconds?: number;
}

export interface SidecarProcess {
  /** One request of the app, through the proxy. @param authorization that the app brings. */
  request(authorization?: string): Promise<AppAnswer>;
  /** Results of the grants so far, oldest first, and what is said of those that failed. */
  grants(): readonly string[];
}

/** Long, for providers and tests that share a small machine. */
const TIMEOUTS = { request: '60s', wait: '60s' };

/**
 * `token-sidecar proxy` as its users run it, with a configuration file and a mounted Secret. When the test ends, all that it
 * printed is searched for what was mounted, for every token that reached the upstream or came from the app, and for JWTs.
 */
export async function runSidecarProcess(options: SidecarProcessOptions): Promise<SidecarProcess> {
  const { credential, files, upstream, route, settings, aheadSeconds = 0 } = options;
  const secret = await mountSecret(files);
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-e2e-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'token-sidecar.json');
  const config = {
    listen: '127.0.0.1:0',
    admin: { listen: '127.0.0.1:0' },
    credentials: [{ name: 'default', dir: secret.directory, timeouts: TIMEOUTS, ...credential }],
    routes: [{ name: 'default', upstream: upstream.url, credential: 'default', ...route }],
    ...settings,
  };
  await writeFile(path, JSON.stringify(config));
  const command = new RunningCommand(['proxy', '--config', path], shiftedBy(aheadSeconds));
  const [line] = await command.output(/^.*"msg":"listening".*$/m);
  const { proxy } = JSON.parse(line) as { readonly proxy: string };
  /** The tokens of the app's own requests. */
  const brought = new Set<string>();
  onTestFinished(async () => {
    command.process.kill('SIGTERM');
    await command.exited;
    const secrets = [...secretsOf(files), ...upstream.tokens, ...brought];
    expect(leakedIn(command.stdout + command.stderr, secrets)).toEqual([]);
  });
  return {
    async request(authorization) {
      if (authorization !== undefined) brought.add(authorization.replace(/^Bearer /, ''));
      const own = authorization === undefined ? {} : { authorization };
      const response = await fetch(`http://${proxy}/`, { headers: { connection: 'close', ...own } });
      const error = response.headers.get('token-sidecar-error');
      return { status: response.status, error, body: (await response.json()) as Verdict };
    },
    grants: () =>
      command.stdout
        .split('\n')
        .filter((text) => /"msg":"(?:no )?token obtained"/.test(text))
        .map((text) => JSON.parse(text) as { readonly result?: string; readonly detail?: string })
        .map(({ result = 'success', detail }) => (detail === undefined ? result : `${result}: ${detail}`)),
  };
}

/** What sets a process's wall clock, and no other. */
function shiftedBy(seconds: number): Readonly<Record<string, string>> {
  if (seconds === 0) return {};
  const source = `const now = Date.now; Date.now = () => now() + ${seconds * 1000};`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(source)}` };
}
