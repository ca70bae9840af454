import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runToEnd } from '../../support/run-command.ts';

const GOLDEN = join(import.meta.dirname, '../../injector/golden');
const input = join(GOLDEN, 'pod.in.yaml');

describe('token-sidecar inject', () => {
  it('prints the manifest with its sidecar, and what it did beside it', async () => {
    const { code, stdout, stderr } = await runToEnd(['inject', '-f', input]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'Pod shop: injected: native\n' });
    expect(stdout).toBe(await readFile(join(GOLDEN, 'pod.out.yaml'), 'utf8'));
  });

  it('reads standard input, and takes its defaults from flags and the environment', async () => {
    const manifest = await readFile(input, 'utf8');
    const env = { TOKEN_SIDECAR_DEFAULT_LOG_LEVEL: 'debug' };
    const { stdout, stderr } = await runToEnd(['inject', '--kubernetes-version=1.28'], env, manifest);
    expect(stdout).toContain('value: debug');
    expect(stdout).not.toContain('initContainers');
    expect(stderr).toBe('Pod shop: injected: classic\n');
  });

  it('prints nothing and ends with 78 when a workload cannot have what it asks for', async () => {
    const manifest = (await readFile(input, 'utf8')).replace('https://api.example.com', 'ftp://api');
    const { code, stdout, stderr } = await runToEnd(['inject', '-f', '-'], {}, manifest);
    expect([code, stdout]).toEqual([78, '']);
    expect(stderr).toContain('Pod shop: token-sidecar: the pod asks for the sidecar and cannot have it');
  });

  it('says which file cannot be read, and that files are named by -f', async () => {
    expect(await runToEnd(['inject', '-f', '/nowhere.yaml'])).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('/nowhere.yaml cannot be read: ENOENT'),
    });
    expect(await runToEnd(['inject', 'deployment.yaml'])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('write -f deployment.yaml'),
    });
  });
});
