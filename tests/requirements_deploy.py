"""Requirements of deployments; a part of the manifest."""

_DEPLOY = "docs/deploy.md#from-a-folder-to-a-deployed-agent"
_TABLE = "docs/deploy.md#what-deploy-may-say"
_ROLE = "docs/agentcore.md#the-execution-role-as-json"
_AGAIN = "docs/deploy.md#change-roll-back-delete"
_CODE = "docs/deploy.md#cloudformation-terraform-cdk"
_ELSEWHERE = "docs/deploy.md#kubernetes"

DEPLOY = {
    "deploy.makes": (_DEPLOY, "A deployment makes what is missing, changes what differs, and nothing else."),
    "deploy.plan": (_DEPLOY, "A plan says what would change, and changes nothing."),
    "deploy.calls": (_DEPLOY, "A dry run prints every call, makes none, and AWS's models take each of them."),
    "deploy.tested": (_DEPLOY, "A run through the data plane tests the deployment, and a failure is told."),
    "deploy.progress": (_DEPLOY, "Steps are lines, with a bar below them on a terminal, which leaves nothing behind."),
    "deploy.waits": (_DEPLOY, "A deployment waits until AgentCore is ready, and tells the reason of a failure."),
    "deploy.docker": (_DEPLOY, "An image is built once for the same files, and passwords are no arguments."),
    "deploy.runtime": (_TABLE, "Settings and options become the variables and the parameters of the runtime."),
    "deploy.refusals": (_TABLE, "What cannot be deployed is named, and no secret becomes a plain variable."),
    "deploy.role": (_ROLE, "The execution role may do what the settings need, and no more."),
    "deploy.continues": (_AGAIN, "A run that failed at any call is mended by the next one."),
    "deploy.destroys": (_AGAIN, "Everything that was made is deleted, and nothing without a yes."),
    "deploy.owner": (_AGAIN, "Nothing that somebody else made is taken over or deleted."),
    "deploy.versions": (_AGAIN, "Endpoints follow versions and go back, once unless a version is named."),
    "deploy.status": (_AGAIN, "The state and the log of a deployed runtime are shown."),
    "deploy.code": (_CODE, "CloudFormation, Terraform and CDK have the same role and runtime as the calls."),
    "deploy.elsewhere": (_ELSEWHERE, "The manifests for Kubernetes and ECS are valid and agree with the server."),
    "settings.secrets": (_TABLE, "A setting that is the ARN of a secret stands for the secret."),
}
