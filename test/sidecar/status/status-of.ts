import { loadConfig } from '../../../src/config/load.ts';
import { readStatus } from '../../../src/sidecar/status/read-status.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

const CREDENTIAL = { name: 'default', tokenUrl: 'https://sso.example.com/token', dir: '/secret' };

/** What is told of a sidecar that has just started with this configuration. */
export async function statusOf(
  settings: Readonly<Record<string, unknown>>,
  changed: Partial<Parameters<typeof readStatus>[0]> = {},
) {
  const text = JSON.stringify({ credentials: [CREDENTIAL], ...settings });
  const config = await loadConfig({
    config: { key: '--config', text: await temporaryFile('token-sidecar.json', text) },
  });
  return readStatus({
    config: () => config,
    credentials: () => [],
    stats: () => new Map(),
    history: { recent: () => undefined, lastMinute: () => undefined },
    spoken: () => new Map(),
    refusedHosts: () => [],
    fileTroubles: () => [],
    draining: () => false,
    logLevel: () => 'info',
    configuration: () => undefined,
    pod: { name: 'shop' },
    startedAtMs: 0,
    nowMs: () => 1000,
    ...changed,
  });
}
