import type { Random } from '../random.ts';
import type { Deployment, DeploymentOptions } from './deployment.ts';
import type { DrilledOrganization } from './organization.ts';

export interface FaultContext {
  deployment: Deployment;
  organizations: readonly DrilledOrganization[];
  random: Random;
}

/** Something that breaks, or that an operator does, while clients call. */
export interface Fault extends DeploymentOptions {
  name: string;
  /** Whether lists go over several script calls. */
  longLists?: true;
  /** Whether clients disconnect before they have their answers. */
  impatient?: true;
  /** Whether the deployment cannot be used for another round. */
  breaksDeployment?: true;
  /** Whether acknowledged writes may be lost: they are counted, but are not violations. */
  mayLoseWrites?: true;
  /** What happens after clients have started and before they end. */
  inject: (context: FaultContext) => Promise<void>;
}
