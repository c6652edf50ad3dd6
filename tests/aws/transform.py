"""transform.py TEMPLATE: what CloudFormation makes of a SAM template, as JSON on stdout. Nothing is asked of AWS.

Parameters have their defaults. The code of every function is said to be in S3, as `sam package` would leave it.
"""

import json
import os
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

from samtranslator.parser.parser import Parser  # noqa: E402, F401 (the transform needs it to be imported)
from samtranslator.translator.transform import transform  # noqa: E402
from samtranslator.yaml_helper import yaml_parse  # noqa: E402


class NoManagedPolicies:
    """Names of managed policies stay what they are; the real loader would ask IAM for all of them."""

    def load(self):
        return {}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        template = yaml_parse(file.read())
    functions = [it for it in template["Resources"].values() if it["Type"] == "AWS::Serverless::Function"]
    for function in functions:
        function["Properties"]["CodeUri"] = "s3://code/function.zip"
    parameters = {name: it["Default"] for name, it in template.get("Parameters", {}).items() if "Default" in it}
    result = transform(template, parameters, NoManagedPolicies())
    result.pop("Transform", None)
    json.dump(result, sys.stdout, default=str)


main()
