import { createReadStream } from 'node:fs';
import { ConfigurationError, type Problem } from '../config/problems.ts';
import { readSettings, readValue, type Settings } from '../config/settings.ts';
import type { ValueFormat } from '../config/values.ts';
import { messageOf, SidecarError, systemCodeOf } from '../errors.ts';
import { injectManifests } from '../injector/manifests/inject-manifests.ts';
import { objectName } from '../injector/pod/annotation-formats.ts';
import type { ClusterVersion } from '../injector/pod/injection-defaults.ts';
import type { Command, CommandContext } from './command.ts';
import { INJECTION_SETTINGS, readInjectionDefaults } from './injection-settings.ts';

const SETTINGS = {
  filename: {
    argument: 'FILE',
    description: 'Manifests, YAML or JSON; also written -f; - is standard input',
    default: '-',
  },
  'kubernetes-version': {
    argument: 'VERSION',
    description: 'Version of the cluster that the manifests are for, such as 1.30',
    default: 'one with native sidecars',
  },
  namespace: {
    argument: 'NAME',
    description: 'Namespace of objects that name none',
    default: 'default',
  },
  ...INJECTION_SETTINGS,
} as const satisfies Settings;

/** Far above what a cluster takes; what is longer was given by mistake. */
const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

const clusterVersion: ValueFormat<ClusterVersion> = {
  expected: 'a version such as 1.30',
  parse(text) {
    const [, major, minor] = /^v?(\d{1,3})\.(\d{1,3})(?:\.\d+)?$/.exec(text) ?? [];
    return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
  },
};

export const inject: Command = {
  summary: 'Print manifests with the sidecar added, as the injector would add it to their pods',
  operands: '[-f FILE]',
  settings: SETTINGS,
  async run(context) {
    const args = context.args.map((arg) => arg.replace(/^-f(?==|$)/, '--filename'));
    const { given, positionals } = readSettings(SETTINGS, args, context.env);
    if (positionals.length > 0)
      throw new SidecarError('usage', `inject takes no operand: write -f ${positionals[0]}`);
    const problems: Problem[] = [];
    const defaults = readInjectionDefaults(given, problems);
    const version = readValue(given['kubernetes-version'], clusterVersion, problems);
    const namespace = readValue(given.namespace, objectName, problems) ?? 'default';
    if (problems.length > 0) throw new ConfigurationError(problems);

    const file = given.filename?.text ?? '-';
    const text = await readManifests(file, context);
    const cluster = version === undefined ? {} : { version };
    const injected = injectManifests(text, { defaults, cluster, namespace });
    if (injected.problems.length > 0) throw new SidecarError('configuration', injected.problems.join('\n'));
    context.stdout.write(injected.text);
    for (const note of injected.notes) context.stderr.write(`${note}\n`);
    return 0;
  },
};

/** @throws {SidecarError} `configuration` when the file cannot be read or is too large. */
async function readManifests(file: string, { stdin }: CommandContext): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // As it comes: the file may be a pipe, as of `-f <(kustomize build)`.
    for await (const chunk of file === '-' ? stdin : createReadStream(file)) {
      chunks.push(chunk as Buffer);
      bytes += (chunk as Buffer).length;
      if (bytes > MAX_MANIFEST_BYTES) throw new Error(`it is larger than ${MAX_MANIFEST_BYTES} bytes`);
    }
  } catch (error) {
    const why = systemCodeOf(error) ?? messageOf(error);
    throw new SidecarError('configuration', `--filename: ${file} cannot be read: ${why}`, { cause: error });
  }
  return Buffer.concat(chunks).toString('utf8');
}
