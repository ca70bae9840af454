import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runToEnd } from '../../support/run-command.ts';
import { runHere } from '../../support/run-here.ts';

const GOLDEN = join(import.meta.dirname, '../../injector/golden');
const input = join(GOLDEN, 'pod.in.yaml');

describe('token-sidecar inject', () => {
  it('prints the manifest with its sidecar, and what it did beside it', async () => {
    const { code, stdout, stderr } = await runHere(['inject', '-f', input]);
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
    const { code, stdout, stderr } = await runHere(['inject', '-f', '-'], {}, manifest);
    expect([code, stdout]).toEqual([78, '']);
    expect(stderr).toContain('Pod shop: token-sidecar: the pod asks for the sidecar and cannot have it');
  });

  it('says which file cannot be read, and that files are named by -f', async () => {
    expect(await runHere(['inject', '-f', '/nowhere.yaml'])).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('/nowhere.yaml cannot be read: ENOENT'),
    });
    expect(await runHere(['inject', 'deployment.yaml'])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('write -f deployment.yaml'),
    });
  });

  const profiles = join(GOLDEN, 'profiles.in.yaml');
  const asking = `apiVersion: v1
kind: Pod
metadata: { name: shop, annotations: { token-sidecar.dev/inject: "true", token-sidecar.dev/profile: payments } }
spec: { containers: [{ name: app, image: shop }] }
`;

  it('takes profiles from files', async () => {
    const args = ['inject', '--namespace', 'shop', '--profiles', `${input},${profiles}`];
    const { code, stdout, stderr } = await runHere(args, {}, asking);
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'Pod shop: injected: native\n' });
    expect(stdout).toContain('https://payments.example.com/v2');
  });

  it('sends pods to the broker that it is told of, and refuses those of its profiles without one', async () => {
    const file = join(GOLDEN, 'broker.in.yaml');
    const { code, stdout } = await runHere([
      'inject',
      '-f',
      file,
      '--broker-url',
      'https://broker.tokens.svc:15084',
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('https://broker.tokens.svc:15084/token/payments/payments');
    expect(await runHere(['inject', '-f', file])).toMatchObject({
      code: 78,
      stdout: '',
      stderr: expect.stringContaining('expected sidecar, as no broker is configured here (--broker-url)'),
    });
    const unreadable = ['--broker-url', 'https://broker', '--broker-ca-file', '/nowhere/ca.crt'];
    expect(await runHere(['inject', '-f', file, ...unreadable])).toMatchObject({
      code: 78,
      stdout: '',
      stderr: expect.stringContaining('--broker-ca-file: "/nowhere/ca.crt": expected a usable CA bundle'),
    });
  });

  it('says which profile is nowhere, and which file of profiles is none', async () => {
    expect(await runHere(['inject'], {}, asking)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining(
        '"payments": expected the name of a TokenProfile in the namespace default',
      ),
    });
    expect(await runHere(['inject', '--profiles', '/nowhere.yaml'], {}, asking)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('--profiles: /nowhere.yaml cannot be read: ENOENT'),
    });
    expect(await runHere(['inject', '--profiles', import.meta.filename], {}, asking)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining(
        `--profiles: ${import.meta.filename}: expected manifests in YAML or JSON`,
      ),
    });
  });
});
