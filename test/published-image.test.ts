/** The public image is there only after a release: whoever reads its name is told so, and how to do without. */

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps?: readonly Step[] }>>;
}

interface Step {
  readonly with?: { readonly platforms?: string };
}

async function platformsOf(workflow: string, job: string): Promise<string | undefined> {
  const { jobs } = parse(await read(`.github/workflows/${workflow}.yml`)) as Workflow;
  return jobs[job]?.steps?.map((step) => step.with?.platforms).find((platforms) => platforms !== undefined);
}

it('every file that names the public image says who publishes it', async () => {
  const { stdout } = await promisify(execFile)(
    'git',
    ['grep', '--files-with-matches', 'ghcr.io/token-sidecar/', '--', '.', ':!test', ':!src/injector/pod'],
    { cwd: ROOT },
  );
  const files = stdout.trim().split('\n');

  expect(files).toContain('README.md');
  const silent: string[] = [];
  for (const file of files) if (!/release\s+workflow/i.test(await read(file))) silent.push(file);
  expect(silent).toEqual([]);
});

it('CI, the release, the docs and the chart name the same architectures', async () => {
  const platforms = await platformsOf('release', 'image');

  expect(platforms).toBe('linux/amd64,linux/arm64');
  expect(await platformsOf('ci', 'architectures')).toBe(platforms);
  expect(await read('docs/image.md')).toContain(`docker buildx build --platform ${platforms} `);
  const { annotations } = parse(await read('charts/token-sidecar/Chart.yaml')) as {
    annotations: Readonly<Record<string, string>>;
  };
  const [image] = parse(annotations['artifacthub.io/images'] ?? '') as { platforms: string[] }[];
  expect(image?.platforms.join(',')).toBe(platforms);
});

it('no step of the build runs on the architecture of the target, so none is emulated', async () => {
  const stages = (await read('Dockerfile')).split(/^(?=FROM )/m).slice(1);
  const last = stages.pop();

  expect(last).not.toMatch(/^(RUN|ADD) /m);
  expect(stages.length).toBeGreaterThan(0);
  for (const stage of stages) expect(stage).toMatch(/^FROM --platform=\$BUILDPLATFORM /);
});
