import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { exportedSeriesNames } from '../../scripts/monitoring/metrics.ts';
import { parseClients } from '../../src/issuer/client-sources.ts';
import { hashSecret } from '../../src/issuer/secret-hashing.ts';
import { type Outcome, run } from '../chart/tools.ts';
import { blocksOfKind } from './blocks.ts';

/** What promtool makes of a file. */
async function promtool(what: 'rules' | 'config', text: string): Promise<Outcome> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-docs-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, 'file.yaml');
  await writeFile(file, text);
  return await run('promtool', ['check', what, file]);
}

const rules = (expr: string): string =>
  stringify({ groups: [{ name: 'a', rules: [{ record: 'b', expr }] }] });

describe('queries, of metrics that there are', () => {
  it.each(blocksOfKind('promql'))('%s', async (_, { text }) => {
    const { ok, stdout, stderr } = await promtool('rules', rules(text.trim()));
    expect(ok, stdout + stderr).toBe(true);
    const names = text.match(/\btoken_sidecar_\w+/g) ?? [];
    const known = exportedSeriesNames();
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  });

  it('are refused where they are wrong', async () => {
    const { ok } = await promtool('rules', rules('rate(token_sidecar_token_ready'));
    expect(ok).toBe(false);
  });
});

describe('settings of Prometheus', () => {
  it.each(blocksOfKind('prometheus'))('%s', async (_, { text }) => {
    // Debian's promtool is built without that discovery; everything else is looked at.
    const known = text.replace(/kubernetes_sd_configs:\n\s+- role: pod/, 'static_configs: []');
    const { ok, stdout, stderr } = await promtool('config', known);
    expect(ok, stdout + stderr).toBe(true);
  });
});

describe('clients of the issuer', () => {
  it.each(blocksOfKind('clients'))('%s', async (_, { text }) => {
    // A hash is left out for its length.
    const whole = text.replace(/\$scrypt\$\S*…/, await hashSecret('secret', { ln: 1, r: 1, p: 1 }));
    expect(parseClients(whole).size).toBeGreaterThan(0);
  });
});

describe('JSON', () => {
  it.each(blocksOfKind('json'))('%s', (_, { text }) => {
    expect(JSON.parse(text)).toBeTypeOf('object');
  });
});
