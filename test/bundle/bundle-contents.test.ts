import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type BuiltCopy, buildCopy, REVISION } from './built-copy.ts';

let copy: BuiltCopy;
beforeAll(async () => {
  copy = await buildCopy('project');
}, 120_000);
afterAll(() => copy?.remove());

const read = (file: string): Promise<string> => readFile(join(copy.output, file), 'utf8');

/** Names of the packages with code in a file, as its source map tells them. */
async function packagesIn(file: string): Promise<Set<string>> {
  const { sources } = JSON.parse(await read(`${file}.map`)) as { sources: string[] };
  const names = sources.map((source) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]);
  return new Set(names.filter((name) => name !== undefined));
}

async function bundledFiles(): Promise<string[]> {
  return (await readdir(copy.output)).filter((file) => file.endsWith('.js'));
}

async function packagesInAll(): Promise<Set<string>> {
  const each = await Promise.all((await bundledFiles()).map(packagesIn));
  return new Set(each.flatMap((names) => [...names]));
}

describe('the sidecar’s file', () => {
  it('holds what the sidecar needs', async () => {
    const packages = await packagesIn('proxy.js');
    for (const name of ['pino', '@prometheus-io/client']) expect(packages).toContain(name);
  });

  it.each([/^@kubernetes\//, /^openid-client$/, /^undici$/, /^jose$/])(
    'holds nothing of %s, which only other commands need',
    async (banned) => {
      const found = [...(await packagesIn('proxy.js'))].filter((name) => banned.test(name));
      expect(found).toEqual([]);
      // It would have been seen: another command does hold it.
      expect([...(await packagesInAll())].filter((name) => banned.test(name))).not.toEqual([]);
    },
  );

  it('holds no module of the other domains', async () => {
    const { sources } = JSON.parse(await read('proxy.js.map')) as { sources: string[] };
    expect(sources).toContain('../src/commands/proxy.ts');
    expect(sources.filter((source) => /^\.\.\/src\/(injector|issuer|demo)\//.test(source))).toEqual([]);
  });
});

it('the program runs where nothing is installed', async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), 'token-sidecar-bundle-'));
  onTestFinished(() => rm(elsewhere, { recursive: true }));
  await cp(copy.output, join(elsewhere, 'dist'), { recursive: true });
  await cp(join(copy.root, 'package.json'), join(elsewhere, 'package.json'));
  const program = join(elsewhere, 'dist/token-sidecar.js');
  const run = (flag: string) => promisify(execFile)(process.execPath, [program, flag]);
  expect((await run('--version')).stdout).toMatch(`token-sidecar ${manifest.version} (revision ${REVISION}`);
  // The overview loads every command.
  expect((await run('--help')).stdout).toContain('  issuer ');
});

it('spans and their export are in a part of their own', async () => {
  const ofTraces = (names: ReadonlySet<string>) =>
    [...names].filter((name) => name.startsWith('@opentelemetry/'));
  expect(ofTraces(await packagesIn('tracing.js'))).toContain('@opentelemetry/sdk-trace');
  for (const file of ['token-sidecar.js', 'proxy.js', 'demo.js']) {
    expect([file, ofTraces(await packagesIn(file))]).toEqual([file, []]);
  }
});

it('the status page is in a part of its own, with what runs in the browser in it, short and without types', async () => {
  const page = await read('status-page.js');
  expect(page).toContain('parseFromString');
  expect(page).not.toContain('HTMLElement');
  expect(page).not.toContain('stripTypeScriptTypes');
  expect(await read('proxy.js')).not.toContain('parseFromString');
});

describe('what profiles come to', () => {
  it('is in a part of its own, with the rules of the configuration file', async () => {
    expect(await packagesIn('profile-rules.js')).toContain('valibot');
    for (const file of ['inject.js', 'injector.js', 'injector-cluster.js']) {
      expect([file, [...(await packagesIn(file))]]).toEqual([file, expect.not.arrayContaining(['valibot'])]);
    }
  });

  it('is found by `inject`', async () => {
    const program = join(copy.output, 'token-sidecar.js');
    const manifests = join(import.meta.dirname, '../injector/golden/profiles.in.yaml');
    const { stdout } = await promisify(execFile)(process.execPath, [program, 'inject', '-f', manifests]);
    expect(stdout).toContain(
      'token-sidecar.dev/profiles-in-use: TokenProfile/payments, ClusterTokenProfile/crm',
    );
  });
});

it('the program tells the revision that it was built from', async () => {
  expect(await read('proxy.js')).toContain(REVISION);
});

describe('what is said of the bundled packages', () => {
  /** Name and version as the list at the head of the licences has them. */
  async function listed(): Promise<string[]> {
    const [head = ''] = (await read('THIRD-PARTY-LICENSES.txt')).split('='.repeat(80));
    return [...head.matchAll(/^(\S+) \(.+\)$/gm)].map(([, key]) => key as string);
  }
  const nameOf = (key: string) => key.slice(0, key.lastIndexOf('@'));

  it('names every package with code in any file, and no other', async () => {
    const names = new Set((await listed()).map(nameOf));
    // The bundler's own helpers have no source file.
    expect(names.delete('rolldown')).toBe(true);
    expect(names).toEqual(await packagesInAll());
  });

  it('has the text of the licence of each', async () => {
    const [, ...sections] = (await read('THIRD-PARTY-LICENSES.txt')).split(`${'='.repeat(80)}\n`);
    const keys = await listed();
    expect(sections.map((section) => section.split('\n')[0])).toEqual(keys);
    for (const [index, section] of sections.entries()) {
      expect([keys[index], section]).toEqual([
        keys[index],
        expect.stringMatching(/permission|licen[cs]e|copyright|public domain/i),
      ]);
      expect(section.length).toBeGreaterThan(500);
    }
  });

  it('the bill of materials lists the same, each with its purl, digest and licence', async () => {
    const bill = JSON.parse(await read('sbom.cdx.json'));
    expect(bill).toMatchObject({
      bomFormat: 'CycloneDX',
      metadata: { component: { name: manifest.name, version: manifest.version, type: 'application' } },
    });
    type Component = { name: string; version: string };
    const keys = bill.components.map(({ name, version }: Component) => `${name}@${version}`);
    expect(new Set(keys)).toEqual(new Set(await listed()));
    for (const component of bill.components) {
      expect(component).toMatchObject({
        purl: expect.stringMatching(/^pkg:npm\//),
        hashes: [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) }],
        licenses: [expect.anything()],
      });
    }
  });

  it('the bill of materials has nothing that differs from build to build, and no dangling reference', async () => {
    const bill = JSON.parse(await read('sbom.cdx.json'));
    expect(bill).not.toHaveProperty('serialNumber');
    expect(bill.metadata).not.toHaveProperty('timestamp');
    type Dependency = { ref: string; dependsOn: string[] };
    const known = [bill.metadata.component, ...bill.components].map((each) => each['bom-ref']);
    const used = bill.dependencies.flatMap(({ ref, dependsOn }: Dependency) => [ref, ...dependsOn]);
    expect(used.filter((ref: string) => !known.includes(ref))).toEqual([]);
  });
});
