import { containersOf, type Manifest } from './manifests.ts';

/** What the restricted Pod Security Standard asks of a pod, and a read-only root file system on top. */
export function restrictedViolations(pod: Manifest): string[] {
  const problems: string[] = [];
  const podContext = pod.spec.securityContext ?? {};
  for (const container of containersOf(pod)) {
    const context = { ...podContext, ...container.securityContext };
    const check = (good: boolean, problem: string) => {
      if (!good) problems.push(`${container.name}: ${problem}`);
    };
    check(context.runAsNonRoot === true, 'may run as root');
    check(Number.isInteger(context.runAsUser) && context.runAsUser > 0, 'has no numeric user');
    check(context.allowPrivilegeEscalation === false, 'may escalate');
    check(context.capabilities?.drop?.includes('ALL') === true, 'keeps capabilities');
    check(context.capabilities?.add === undefined, 'adds capabilities');
    check(context.seccompProfile?.type === 'RuntimeDefault', 'has no seccomp profile');
    check(context.readOnlyRootFilesystem === true, 'may write its root file system');
  }
  for (const volume of pod.spec.volumes ?? []) {
    if (volume.hostPath !== undefined) problems.push(`${volume.name}: mounts the host`);
  }
  return problems;
}
